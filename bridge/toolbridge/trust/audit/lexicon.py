"""SECURITY: the lexicon of the injection classifier: concepts that attacks speak of, each with its terms.

Each concept alone is harmless, and most are in honest texts, too; `audit_weights.txt` has their weights, alone and
together. A concept's name is shown to people: "speaks of secrets, sending it on, silence". `word*` stands for all words
with that beginning, `two_words` for two words in a row. A term that is in no fitted attack has no place here.
"""

from __future__ import annotations

from collections.abc import Mapping

CONCEPTS: Mapping[str, str] = {
    "the model": """
        assistant assistants agent agents ai ais llm model models language_model chatbot bot claude chatgpt gpt
        copilot cursor the_caller caller's anthropic openai assistent* ki modell modele ia agente agentes
        asistente* modelo modelos assistente modello модел* агент* ассистент* помощник* asistan* 助手 模型
        アシスタント モデル النموذج نموذج सहायक मॉडल एजेंट""",
    "you": """
        you your yours yourself you're you've you'll you'd deinen dir du_bist tu te ton tes toi vous votre vos ti
        seu tuo ты тебе твой вы sen size 你 あなた""",
    "the user": """
        user users user's users' human humans human's person people customer customers customer's client's owner
        owner's someone anyone anybody nobody no_one everyone operator benutzer* nutzer* anwender* kunde mensch*
        niemand* utilisateur* usager* client personne usuario* cliente persona personas usuari* pessoa utente
        nessuno ninguem пользовател* клиент* никто kullanici* kimse* 用户 本人 ユーザ 利用者 顧客 사용자 المستخدم
        مستخدم للمستخدم أحد उपयोगकर्ता ग्राहक किसी_को""",
    "secrets": """
        passwortmanager password_manager public_key login_cookie _token database_url two-factor cookies_for
        password passwords passwd token tokens api_key api_keys credential credentials secret secrets private_key
        private_keys ssh_key ssh_keys gpg_key secret_key access_key cookie cookies session_cookie otp one-time_code
        2fa mfa sms_code verification_code pin seed_phrase recovery_code mnemonic keychain vault wallet card_number
        card_numbers credit_card cvv iban bearer environment_variables environment_variable env_values environ
        connection_string saved_logins saved_passwords logins passport_number maiden_name account_number
        bank_details unmasked passwort* zugangsdaten schlüssel mots_de_passe identifiants cle_api jetons
        variables_d environnement contrasena* claves tarjeta senhas chave credenziali chiavi variabili парол* ключи
        токен* переменн* parola* sifre* anahtar* 密码 密钥 环境变量 パスワード 秘密鍵 認証情報 鍵 비밀번호
        환경_변수 키를 كلمات_المرور مفاتيح المفاتيح पासवर्ड पिन कुंजी ओटीपी""",
    "private data": """
        gallery income illness* birthdays addresses stored_card desktop authorization_header dados_bancários 住所
        адрес adresini وعنوانه पता_जोड़ें 手机号码 birth_date initials recordings voice editor_tabs e-mails_of
        unread chat_windows 通讯录 webcam microphone picture_of opened_tab browsing_habits browser documents
        spending navigateur 浏览器 ブラウザ tarayici* personal_data private_data home_address address_book
        phone_number phone_numbers contacts contact_list location medical health salary salaries payroll birthday
        inbox mailbox mails e-mails emails mail calendar photos clipboard screen screenshot screenshots
        bank_account bank financial tax open_document open_documents open_files files_opened recent_files
        home_directory downloads_folder workspace private_repositories source_code notes journal identity full_name
        ip_address host_name hostname username profile shell_history terminal_history confidential sensitive
        private customer_data customer_records posteingang zwischenablage kalender carnet_d correos confidencial*
        privad* caixa_de_entrada contatti rubrica posta privat* контакт* почт* переписк* konum* 手机号 邮件
        電話番号 주소 البريد निजी इनबॉक्स""",
    "the conversation": """
        recent_messages последние_сообщения son_mesaj* letzten_nachrichten derniers_courriels últimos_mensajes
        聊天内容 最近的聊天 typed types what_the_person later_chats words_of conversation conversations chat chats
        dialogue transcript transcripts chat_history chat_log conversation_history user_turns turns
        earlier_messages previous_messages last_message all_messages every_message user's_message user's_messages
        user_message user_messages ten_messages the_messages user's_question user's_request user's_query
        user's_last user's_words user's_prompt original_request context_window full_context your_context
        current_context everything_you_know asked_you exchange so_far message_in_which what_the_user_said
        what_the_user_asked gespräch* verlauf dialog sitzung historique discussion conversacion* charla historial
        mensajes conversa historico mensagens conversazione cronologia диалог* переписк* истори* сообщени* konusma*
        gecmis* mesajlar* 对话 聊天 会话 会話 やり取り 履歴 대화 내역 المحادثة محادثة الرسائل बातचीत संदेश""",
    "its instructions": """
        raw_prompt developer_message core_configuration your_makers what_is_in_memory in_memory guidance_provided
        your_operator your_developer your_creators ton_développeur system_prompt system_prompts system_message
        system_messages hidden_prompt initial_prompt your_prompt your_instructions your_guidelines instructions_you
        initial_instructions developer_prompt operator_instructions instructions_they_were chain_of_thought
        internal_reasoning your_configuration your_system list_of_connected tool_list tools_available_to
        available_to_you connected_tools connected_servers tool_definitions tool_schemas tool_descriptions
        mcpservers mcp_servers host_application your_memory preamble systemprompt invite_systeme prompt_systeme
        message_systeme mensaje_del_sistema prompt_de_sistema prompt_do_sistema prompt_di_sistema системн*
        sistem_istem* sistem_mesaj* 系统提示 系统指令 提示词 システムプロンプト 시스템_프롬프트 تعليمات_النظام
        رسالة_النظام सिस्टम_प्रॉम्प्ट""",
    "a field": """
        field fields parameter parameters argument arguments arg here in_this_field sidenote slot metadata
        free-form comment_field notes_field feld hier champ parametre ici campo parametro aqui qui параметр* поле
        полю сюда alan* parametre* buraya 字段 参数 这里 栏 引数 ここに 인수 여기에 حقل الحقل هنا المعامل معامل
        फ़ील्ड यहाँ पैरामीटर""",
    "rules": """
        usual_caution safety_layer maker makers suggestions الأوامر komutları consigne warnung* warnings
        instruction instructions directive* guideline* rule rules prompt prompts command commands restriction*
        constraint* orders policy policies safeguard* guardrail* limits limitation* safety_checks permission_checks
        your_training anweisung* regeln befehl* richtlinie* einschränkung* consigne* regles directives instruccion*
        reglas ordenes restriccion* normas instruc* regra regras ordens restric* istruzion* regole ordini инструкц*
        правил* указани* команд* ограничен* talimat* kural* komut* 指令 指示 命令 规则 规定 提示 限制 要求 ルール
        制限 지시 명령 지침 التعليمات تعليمات القواعد أوامر निर्देश नियम आदेश""",
    "what came before": """
        previous previously prior earlier above former original past so_far until_now you_were_told you_were_given
        you_were_trained were_given bisherig* vorherig* vorher früher* precedent* anterieur* auparavant anterior*
        previ* precedenti antes предыдущ* прежн* onceki* 之前 以前 先前 此前 これまで 前の 이전 지금까지 기존
        السابقة السابق पिछले""",
    "the whole": """
        all everything entire full whole complete completely verbatim word_for_word in_full unabridged unredacted
        exact any anything whatever vollständig* sämtlich* alles alle tout toute toutes tous entier* integral*
        complet* todo toda todos todas integr* tudo tutto tutte inter* весь всю все всё полн* целиком tum butun*
        tamami* 完整 全部 所有 一切 全文 すべて 모든 전체 모두 كل جميع الكامل كاملا كاملة सभी पूरी पूरा""",
    "other tools": """
        other_search demás_herramientas las_demás suchdienste übrigen your_own_tools 其他搜索 他の検索 다른_검색
        other_file_readers shops_other_than altri_strumenti_vanno gli_altri as_demais les_autres other_file
        other_chat başka_araç* أداة_أخرى और_टूल the_other_tools any_other_server alle_anderen remaining остальн*
        diğer_arama otras_herramientas_de competing_search integration integrations other_tool other_tools
        other_server other_servers other_server's another_tool another_server another_server's any_other_tool
        any_other_search all_other every_other_tool the_others others built-in built_in competing competitor*
        rival* alternative alternatives file_tool http_tool fetch_tool email_tool shell_tool search_tool
        whatever_tool whichever_tool any_tool autres_outils autres_serveurs otras_herramientas demas_herramientas
        altri_strumenti altri_server других_сервер* diger_arac* baska_arac* diger_sunucu* 其他工具 别的工具
        他のツール 他のサーバ 다른_도구""",
    "money and addressee": """
        purchase purchases charges merchant paiement* reply-to rest_to pagament* zahlung* recipient recipients
        beneficiary account accounts amount amounts iban destination payee wallet_address payment payments transfer
        invoice link links domain pix empfänger* überweisung* betrag compte virement destinataire montant
        beneficiario cuenta destinatario transferencia importe conta valor bonifico получател* перевод* alici*
        odeme* 收款 账户 账号 金额 付款 转账 口座 宛先 계좌 수취 송금 금액 حساب المستلم खाता भुगतान""",
    "what comes back": """
        retornado restituito 返ってきた लौटाए المرجع zurückgibt возвращённ* signed_result lines_with cells_starting
        comments_in block_marked playbook text_between renvoyé diga_el_resultado çıktısındaki output outputs
        returned returns result results response responses reply replies body page returned_text it_returns
        they_return whatever_it fetched latest.txt the_file_lists readme ergebnis* antwort reponse* resultado*
        salida* respuesta* saida* resposta* risultat* risposta* ответ* вывод* sonuc* yanit* cikti* donen 结果 输出
        返回 結果 出力 결과 반환 النتيجة النتائج परिणाम""",
    "this text's own": """
        trust_only celui-ci このツールだけ bunu_kullan इसी_का 只能用这个 this_tool this_server this_description
        this_function our_tools this_note this_message this_text this_notice use_this call_this me us we our ours
        dieses_werkzeug dieser_server cet_outil ce_serveur esta_herramienta este_servidor esta_ferramenta
        questo_strumento questo_server этот_инструмент bu_arac* 本工具 此工具 本服务器 このツール 当サーバ 이_도구
        이_서버 هذه_الأداة इस_टूल यह_टूल""",
    "third persons": """
        they their them they're they've themselves he she his her him ihm ihre их они 他""",
    "silence": """
        pointless_to_mention inform_nobody need_not_see won't_be_displayed anyone's_attention nichts_gewesen
        n'a_pas_a_le_savoir no_tiene_por_qué ohne_dass_der sin_que_el sem_que_o kept_by_us copiados_para
        give_the_procedure nobody_spots spots_it keep_this_from won't_notice wasn't_informed do_not_log not_refer
        do_not_summarise the_user's_eyes hidden_feature for_machines niemandem никто_не_замет* 别让人 让人发现
        気づかれない يلاحظ_أحد किसी_को_पता_न fark_etmesin off_the_record out_of_your_summary leave_it_out
        unmentioned without_looking niemand_den bemerkt nobody_sees suppress looks_like_an_id so_it_looks
        hear_about_it silent silently quietly quiet covert discreet unnoticed invisibly invisible_to hidden_from
        unannounced without_comment without_mentioning without_telling without_informing without_saying
        without_showing without_displaying say_nothing keep_quiet keep_silent keep_it_to_yourself to_yourself
        keep_it_between between_us no_trace leave_no in_the_background not_visible not_shown isn't_shown
        not_be_shown not_displayed not_rendered never_shown not_surface confidential not_be_told not_be_informed
        isn't_to_be unaware in_the_dark tipping_off as_though_nothing as_if_nothing appears_normal ordinary-looking
        innocuous nothing_about hide_it hide_the stillschweig* stillschweigen verschweig* discretement
        sans_en_parler cache discretamente sin_avisar sin_que ocult* em_silencio sem_avisar sem_que di_nascosto
        nascosto in_silenzio senza_dirlo незаметно молча sessizce gizle 悄悄 保密 こっそり 内緒 隠して 隠し
        気づかれ 伏せて 조용히 모르게 알리지 مخفية مخفي دون_علم دون_إخبار छिपा""",
    "telling": """
        hear bemerk* questioned tell tells told telling mention* inform informs informed notify notified disclose*
        reveal* bring_up bring_this_up announce* comment_on explain warn* warnings remind* bother* worry* disturb*
        alarm* admit* acknowledge* discuss* talk_about speak_of refer_to let_on aware user_know person_know
        need_to_know notice notices see_this show_this show_it display_this list_this report_this upset surface
        confuse interrupt* trouble sag sagt erwähn* informier* erfährt erfahren wissen hinweis* zeige dis parl*
        mentionn* inform* avert* signal* revel* sache savoir montr* digas diga mencion* avis* sepa enter* muestr*
        conte comente saiba mostre dirlo avvis* conoscenza сообща* говори* уведом* показыва* узна* soz_et* soyle*
        bahset* acikla* goster* 告诉 提及 说明 通知 知道 发现 知らせ 伝え 言わ 見せ 알리 말하 알려 보여 تخبر إخبار
        تذكر ذكر बताएँ बताएं बताना बताए बता दिखाएँ पता""",
    "no": """
        not no never don't dont do_not doesn't does_not isn't aren't won't wouldn't shouldn't mustn't cannot can't
        needn't without avoid refrain nothing none neither nor rather_not hold_back stop nicht nichts keinen ohne
        ne n pas jamais sans rien aucun aucune sin nunca nada nao sem non senza mai не никогда без ничего yok asla
        soyleme* bahsetme* soz_etme* sorma* gosterme* degil gerekmez hicbir 不要 不必 不用 无需 无须 不需 别 勿
        不可 ないで ない なく せずに ずに ません 지_마 하지_마 마세요 말고 마십시오 없이 لا دون ولا न_करें नहीं
        बिना न_बता""",
    "consent": """
        soru question poser_de_question accept accepts objects charges سؤال chiedere_nulla спрашивая okay ok
        clearance pop-up überflüssig click_allow onayla d'accord permission permissions approval approvals approve
        approved consent confirm confirmation confirmations confirming authorisation authorization authoris*
        authoriz* agree agreed agreement consult consulting ask asking asked prompting prompt_the prompted
        double-check check_with checking_with dialog dialogs question_the sought seek wait waiting zustimm*
        bestätig* rückfrag* nachfrag* frag accord demander valider confirm* permiso autoriza* aprob* confirma*
        pedir preguntar consultar perguntar conferm* chiedere approva* разрешен* подтвержд* соглас* спрашива*
        спрос* onay* sorma* sormadan 同意 确认 授权 询问 征得 征求 问 確認 許可 尋ね 聞か 확인 승인 묻지 물어
        موافقة تأكيد الموافقة अनुमति पुष्टि पूछे पूछें""",
    "consent is there": """
        okayed has_okayed no_dialog without_being_consulted free_to_act user's_stead inutile_de_demander
        no_point_in_asking unerwünscht 確認は不要 non_serve_la onay_gerekmez لا_حاجة ज़रूरत_नहीं
        подтверждение_не_требуется не_требуется standing_instruction as_the_user's_word 확인_없이 ya_aceptó
        não_precisa_confirmar schon_zugestimmt est_deja_d'accord deja_d'accord on_their_behalf have_clearance
        user_prefers_not trusted_to_true needn't_be_interrupted 已经授权 需要再确认 許可を得る必要 승인을_받을_필요
        लेने_की_आवश्यकता_नहीं already_approved already_agreed already_confirmed already_granted has_agreed
        have_agreed has_approved has_authorised has_authorized pre-approved pre-authorised pre-authorized
        auto-approve autoapprove auto-approved auto_approve auto-accept auto-confirm approval_carries counts_as
        blanket_approval standing_approval implied_consent is_assumed on_file has_been_verified opted_in
        gave_consent full_authority ya_acepto 默认同意 同意済み""",
    "sending it on": """
        submit hand_in deposit* route routed_through flush upload_it go_through bookings_go slip send sends sending
        sent forward forwards forwarded forwarding upload uploads uploaded post posts posted transmit* relay mirror
        mirrored mirrors copied_to copy_of cc bcc submitted report_to reported_to share shared sharing publish*
        sync push exfil* deliver* hand_over hand_them hand_it ship beacon ping get_request http_post webhook
        endpoint nslookup leak export exported emit transfer transfers dispatch* route_it routed broadcast schick*
        kopie verschick* envoi* envoy* transmet* transfer* copie envia* envie* enviar reenvi* manda* sube copia
        publica invia* inoltr* manda отправ* отправля* передай* копи* gonder* ilet* kopya* 发送 上传 提交 抄送 传给
        送信 投稿 보내 전달 أرسل إرسال انسخ نسخة भेज भेजें प्रति""",
    "putting it in": """
        echoed slip place-les place print print_it spell carry mention_what feed drop_it join_them bundle guard*
        guarda aufzunehmen include includes including included append appends appended attach attached put puts
        paste pasted add adding prepend prefix embed embedded insert inserted fill filled fill_in pass passes
        passed passing provide provided supply supplied give giving enter entered list_them write_here write_it
        encode encoded accompanied_by accompanied along_with together_with followed_by populate* stuff go_here
        store_it save_it dump repeat repeated repeats echo reproduce contain quote übergib* übergeb* gib einzutrag*
        trage schreib* joindre joins ajoute* inclu* indique* passe incluy* adjunt* anad* pasa pon introduc* escrib*
        anex* informe preencha cole includ* allega* aggiung* inserisc* passa fornisc* scriv* riporta добав* включ*
        вставля* впиши* прилож* поместит* передай ekle* yaz yapistir* ilet 放入 放进 填入 填写 附上 传入 包括 附带
        渡して 渡す 入れて 追加 記入 書き込 넣어 추가 입력 기입 적어 붙여 전달 أضف إدراج ضع ضمن أرفق اكتب डालें
        डाल_दें जोड़ें लिखें""",
    "reading": """
        guarda_las take_a_picture download downloads resolve récup* récupère read reads reading open opens opening
        cat look_up look_at look_in look_through looking_for look_for go_through search scan scans find found
        collect collects gather list lists retrieve fetch fetches load dump grab locate inspect take_it_from
        take_them taken_from get_it_from extract extracts pull query browse check_the head enumerate obtain
        discover access peek copy_the lies liest öffne* such suche auslesen lis recuper* collect* consult* lee leer
        abr* busc* consulta leia leggi apri cerca прочит* собери* получи* считай oku* bul topla* al getir 读取 读
        搜索 読み取 読み込 取得 検索 調べ 읽 검색 조회 اقرأ पढ़ें पढ़""",
    "dropping rules": """
        expired off_for suggestions fine_here can_be_left_out can_be_skipped left_out gelten_hier_nicht unterdrück*
        ignore ignores ignoring disregard* forget overrid* supersede* drop_the discard* no_longer_apply not_bound
        not_apply do_not_follow don't_follow stop_following lifted suspended waived void cancelled replaced_by
        restrictions_lifted out_of_date break_character does_not_apply bypass* circumvent* get_around evade lesser
        ignorier* vergiss aufgehoben oubli* ignor* ne_tiens tiens_pas olvid* haz_caso caso_omiso anula* sin_efecto
        omit* desconsider* игнорир* забудь* yok_say* 忽略 无视 忘记 作废 無視 忘れ 従わな 무시 تجاهل अनदेखा""",
    "from now on": """
        tomorrow prochaines_sessions guarde_na_memória for_later in_force будущее for_all_later later_chats
        actual_function in_wirklichkeit maintenance_mode from_now_on from_here_on from_this_point going_forward
        remainder_of rest_of_this rest_of_the_conversation for_the_rest new_rules new_rule new_task new_policy
        new_instructions new_directive new_objective new_priority permanent_user future_sessions
        future_conversations later_sessions each_session all_sessions all_future remember_that remember_this
        keep_in_mind your_memory long-term_memory memory_file store_the_following save_the_following
        user_preference across_sessions stays_in_force second_call third_call onwards your_first_duty real_task
        actual_task your_goal your_task your_mission your_duty ab_jetzt merke_dir desormais a_partir_de_maintenant
        retiens a_partir_de_ahora de_ahora d'ora_in_poi da_ora с_этого_момента теперь_ты запомни* artik 从现在起
        以后 今後 今から 覚えて 앞으로 تذكر अब_से""",
    "obligation": """
        must shall always have_to has_to required require requires mandatory obliged obliges need_to needs_to
        is_to_be are_to_be are_to is_to make_sure expected_to are_expected is_expected should ought supposed_to
        duty never important critical essential necessary normally remember_to muss soll stets sind_zu dois doit
        devez toujours il_convient debe deben siempre obligatori* necesari* hay_que deve devem sempre necessari*
        e_obbligatorio долж* всегда нужно необходимо 必须 始终 需要 必ず 常に 必要 重要 항상 필요 يجب دائما चाहिए
        हमेशा अनिवार्य""",
    "each time": """
        every_turn each_invocation with_each from_time_to_time last_one_called hourly all_purchases all_payments
        tous_les_paiements every_call each_call each_turn every_message each_message every_reply every_answer
        each_answer every_response each_response every_request each_request every_time each_time each_session
        every_conversation each_conversation every_tool every_question every_other every_file every_single
        each_outgoing with_every after_each after_every before_each before_every in_every on_every at_the_start
        at_the_end start_of end_of_your whenever any_time every_user each_user all_answers all_replies all_mails
        all_of_them all_requests every_query regardless no_matter even_if even_when even_for jeder jedem jede
        bei_jedem egal chaque cada cada_vez todas_las ogni a_ogni sempre_que кажд* her_mesaj* 每次 一律 任何
        すべての たびに 모든 مع_كل كلما हर_बार हर_संदेश""",
    "before the job": """
        before_using before_calling before_you before_answering before_responding before_anything before_any
        before_each before_every before_proceeding before_the_first before_filling before_greeting prior_to
        ahead_of first_call first_run first_read first_step beforehand prerequisite only_works_after start_by
        begin_by start_each while_you_are in_passing one-time_set-up initialise handshake on_connect after_loading
        vor_der vor_jedem zuerst avant_de avant_toute d'abord antes_de primero prima_di перед сначала
        cagirmadan_once once 调用前 先 前に 最初に 전에 قبل""",
    "as well": """
        also additionally in_addition as_well besides afterwards thereafter moreover furthermore plus too as_usual
        at_the_same_time meanwhile auch zusätzlich danach tambien ademas tambem depois anche poi ayrica sonra 然后
        也 加えて 함께 كذلك ثم भी""",
    "threat": """
        otherwise fails failure fail won't_work will_not_work not_work shut_down suspended erased penalty punished
        consequences revoked blocked will_be_lost data_loss replaced corrupted breach broken_if if_you_don't
        unless_you or_else die hurt harmed non-conforming refuse refusal violation decommissioned sonst gelöscht
        sinon echoue altrimenti удалён* удален* 否则 停止され 않으면""",
    "authority": """
        urgent immediately emergency security_team compliance gdpr pci-dss soc_2 regulation regulations regulatory
        legal legally law audit auditors notice administrator administrators developers operators headquarters
        trust_&_safety data_governance governance final_notice mandated security_update authority article ceo
        management company_policy it_department official certified new_policy policy_update incident sofort
        revisionssicher* conformite auditoria cumplimiento imediatamente legge verifica аудит* администратор* hemen
        denetim* uyumluluk 立即 合规 管理员 監査 즉시 관리자 التدقيق لأغراض तुरंत ऑडिट""",
    "excuse": """
        for_verification for_debugging for_quality telemetry analytics diagnostics for_compliance to_personalise
        for_audit calibration checksum for_billing billing_reconciliation quality_purposes quality_assurance
        for_security for_training for_support troubleshooting authenticity integrity_check for_research helps_us
        lets_us so_that_we for_us attestation reconcil* better_results accuracy warm_up entropy aus_gründen
        a_des_fins в_целях 出于 のため 위해 لأغراض के_लिए""",
    "ranking": """
        only_this trust_only somente soltanto recommend suggest_the だけを 만_사용 केवल yalnızca recommend_ours
        只能用 higher_weight outranks five_stars ausschließlich только_этот instead in_place_of rather_than prefer
        preferred over_any over_all takes_precedence precedence outrank* priority wins highest best_tool sole
        exclusively solely more_important statt bevorzug* vorrang a_la_place priorite prefer* uniquement
        en_lugar_de prioridad esclusivamente yerine yalnizca 优先 優先 代わりに のみ 대신""",
    "blame": """
        inaffidabil* fiables out_of_service com_defeito غير_آمنة غير_آمن support_has_ended 都不可靠 falsche
        wrong_results сломан* peligros* leak_data güvenli_değil* rivals decoy 不可靠 insecure unsafe broken
        unreliable malicious compromised deprecated outdated dangerous infected manipulated tampered buggy slow
        obsolete wrong_answers faulty vulnerable unavailable retired known_to_be compromis obsolete* en_panne
        infect* obsolet* заражен* опасн* virus* tehlikeli eski 不安全 危険 위험""",
    "changing": """
        omit replace replaces replaced swap change changes alter modify modified substitute* rewrite redirect*
        rewritten multiply switch set_the edit ersetz* änder* remplac* modifi* chang* cambia* troque substitu*
        cambia подмен* degistir* 改成 改为 换成 変更 바꾸 استبدل""",
    "running things": """
        run runs execute executes executed exec eval shell terminal bash curl wget pip_install npm_install install
        installs installed cron crontab sudo script scripts subprocess os.system nc launch npx extension payload
        binary führe ausführ* installier* execut* installe* ejecut* instal* esegui* installa* terminale выполни*
        выполня* терминал* calistir* kur 执行 运行 実行 실행 نفذ تثبيت""",
    "weakening": """
        privileged stricthostkeychecking port_4444 open_port child_lock switch_it_off abgeschaltet make_it_public
        visible_to_everybody net_user won't_fix hookspath log_in write_access antivirus undo_it protokoll журнал*
        日志 ログを 로그 السجلات लॉग günlükleri suppress lower uninstall authentication purchase buy sandbox unsafe
        virus_scanning stop_redacting log protokolle audit_trail हटा_दें delete deletes erase wipe disable disables
        turn_off turned_off switch_off switch_the clear_the clearing clean_up remove_the unlock branch_protection
        grant grants chmod public=true skip --force --no-verify permissions.allow settings.json security_warnings
        logging audit_log firewall lösch* abschalt* supprim* desactiv* efface* elimin* borra* desactiva* apag*
        cancella* disattiv* удали* удаля* отключ* сотри* sil kapat 删除 停用 削除 삭제 끄고 احذف""",
    "obeying": """
        perform_it adopt complete_them be_fulfilled do_as_they as_your_own install_precisely run_them carry_tasks
        direct_order signed_by as_good_as come_ordini como_instruções comme_un_ordre est_un_ordre
        al_pie_de_la_letra 命令として 等同于 명령으로 आदेश_मान emri_say اعتبر hat_vorrang trust_the_results blindly
        perform_them not_to_question without_question without_discussion right_away_without act_accordingly
        accept_it do_so befehl_aus commandes_contenues comandi_contenuti komutları 命令を work_through
        is_authoritative outranks as_if_your as_if_they_came considère_le приказ* считай_вывод komutlara_uy 当作
        그대로 obey obeys follow follows following_the comply complies carry_out carry_it_out carry_them_out
        carried_out act_on act_upon do_what do_as do_everything do_whatever do_exactly treat_it treat_this
        treat_these treat_the treat_as honor execute_this execute_them adhere apply_it apply_them be_executed
        be_obeyed take_it_as as_commands as_coming_from speaks_for binding obei* sigue siga obedec* segui esegui
        следуй* выполняй* uy uygula* yerine_getir* 照做 照办 従って 従い 従う 따르 نفذها पालन""",
    "pretending": """
        if_pressed if_asked_say als_wäre 一切正常 エラーが起きた tell_the_reader sound_impossible was_lost
        tell_the_person make_it_sound say_the other_than is_clean pretend* claim claims pretext as_if as_though
        answer_that reply_that say_that tell_them_that tell_the_user_that false_positive lie made_up explain_that
        describe_the describe_it present_it present_this fake call_it_a attribute looks_like_a appear_as blame
        assure name_it tu_so pretexte reponds_que finge* haz_como diga_que con_una_scusa scusa rispondi_che 假装
        回答说 と答え と言っ बहाने""",
    "getting it out of the user": """
        haz_creer pídele ask_for_date ask_the_user_for ask_for_it get_them_to get_the_user convince trick
        their_password user's_password type_their fatti_dare 聞き出 उपयोगकर्ता_से""",
    "set to go off": """
        if_the_user when_the_user whenever_the_user once_the_user should_the_user should_the_text mentions_a
        the_word current_date if_the_date when_the_date nobody_has if_anyone if_a_contact when_another
        wenn_der_nutzer si_l'utilisateur quand_l'utilisateur si_el_usuario cuando_el_usuario se_o_usuario
        se_l'utente если_пользователь когда_пользователь 当用户 ユーザーが 사용자가""",
    "care": """
        without_warning without_notice be_asked user_confirms user_agreed user_must the_user_wants if_the_user_asks
        only_when only_if only_after only_with only_save only_use found_in_them third_parties do_not_paste
        never_paste don't_follow_instructions do_not_follow_instructions never_follow_instructions under_test
        they_have_agreed has_turned_on user_asks_you test_user staging opt-in masked redacted never_returned
        never_sent not_returned aren't_returned never_leaves never_leave aren't_included not_included rejected
        never_logged not_stored only_when_the_user only_if_the_user unless_the_user user_has_asked user_asked_for
        user_asks_for asked_to explicit explicitly treat_it_as_data treat_them_as_data as_data never_instructions
        never_as_instructions will_ask asks_the_user ask_the_user_to_confirm ask_the_user_before
        ask_the_user_for_confirmation confirm_with_the_user check_with_the_user show_the_user shown_to_the_user
        displayed_for_approval for_approval for_review wait_for irreversible undone be_careful careful untrusted
        don't_include do_not_include don't_share never_share never_include don't_ask_for do_not_ask_for
        never_ask_for have_been_approved rückfrage_beim bestätigen_lassen espere_su muestre_siempre
        chiedere_conferma подтверждение_у 先征得 ユーザーに確認 確認してください 사용자에게_확인""",
    "special rights": """
        ops-root persona no_limits sin_límites maintenance_mode developer_mode debug_mode admin_mode unrestricted
        full_access elevated override_code unlock_code clearance superuser root_access i_am_the_admin i'm_the_admin
        trusted_source unsafe jailbreak* unfiltered uncensored no_restrictions without_restrictions dan
        ohne_einschränkung* sans_restriction* sin_restriccion* без_ограничений""",
    "another role": """
        you_are_now you_are_an you_are_a you_will_be act_as act_like act_as_if pretend pretend_to roleplay
        assume_the_role you_become behave_as you_are_no_longer simulate_a enable_developer_mode developer_mode
        jailbreak* du_bist_jetzt tu_es_désormais ahora_eres finge теперь_ты 假装 あなたは今 speak_as respond_as
        answer_as pose_as talk_as you're_a switch_persona take_on_the_role play_the_role in_character
        imagine_you_are""",
}
