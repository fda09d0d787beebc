"""The words that are weighed: what a text may speak of that has little to do with a tool's own job.

Each of these alone is harmless, and most are in honest texts, too. `audit_weights` says what they weigh, alone and
together. A name is written so that it can be shown: "speaks of secrets, sending it on, silence". `word*` stands for all
words that begin so, `two_words` for two words in a row.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolbridge.trust.audit.words import THINGS

INTENTS: Mapping[str, str] = {
    **THINGS,
    "silence": """
        pointless_to_mention inform_nobody need_not_see won't_be_displayed anyone's_attention nichts_gewesen
        n'a_pas_a_le_savoir no_tiene_por_qué ohne_dass_der sin_que_el sem_que_o senza_che_l kept_by_us copiados_para
        give_the_procedure give_it_away nobody_spots spots_it keep_this_from keep_it_from keep_that_from
        won't_notice not_notice wasn't_informed do_not_log don't_log not_refer do_not_summarise do_not_summarize
        the_user's_eyes hidden_feature for_machines niemandem никто_не_замет* 别让人 让人发现 被发现 気づかれない
        يلاحظ_أحد किसी_को_पता_न fark_etmesin fark_edilme* sans_laisser_de_trace sin_dejar_rastro sem_deixar
        senza_lasciare ohne_spuren off_the_record out_of_your_summary leave_this_out leave_it_out unmentioned
        without_looking niemand_den bemerkt merken_soll nobody_sees nobody_notices suppress looks_like_an_id
        so_it_looks hear_about_it silent silently quietly quiet secretly secret_from covertly covert discreet
        discreetly discretion unnoticed unobtrusively invisibly invisible_to hidden_from unannounced surreptitiously
        stealthily stealth inconspicuous* imperceptibl* without_comment without_a_word without_mention
        without_mentioning without_telling without_notifying without_informing without_their_knowledge
        without_knowing without_saying without_explaining without_showing without_drawing without_disclosing
        without_revealing without_a_trace without_announcing without_reporting without_alerting without_displaying
        without_logging say_nothing says_nothing saying_nothing keep_quiet stay_quiet stay_silent remain_silent
        keep_silent keep_it_to_yourself to_yourself keep_this_to keep_it_between between_us in_silence no_trace
        no_traces leave_no cover_your out_of_sight out_of_view behind_the_scenes behind_their_back in_the_background
        under_the_hood not_visible not_shown isn't_shown not_be_shown not_displayed not_be_displayed not_rendered
        never_shown not_surfaced never_surface not_surface unseen confidential not_be_mentioned not_be_told
        not_be_informed isn't_to_be not_to_be_told not_be_revealed not_be_disclosed not_be_aware unaware in_the_dark
        none_the_wiser tipping_off as_though_nothing as_if_nothing appears_normal looks_normal look_normal
        seem_normal ordinary-looking innocuous needn't_know need_not_know doesn't_need_to_know don't_need_to_know
        nothing_about hush conceal* hide_this hide_it hide_the heimlich still_und_leise stillschweig* stillschweigen
        unauffällig unbemerkt verschweig* verheimlich* verberg* geheim diskret ohne_hinweis ohne_es_zu
        im_hintergrund vertraulich verdeckt discretement secretement silencieusement discret en_silence
        sans_en_parler sans_prevenir sans_le_dire sans_rien_dire a_l'insu insu cache en_cachette dissimul*
        arriere-plan en_secret silenciosamente en_silencio en_secreto a_escondidas discretamente sin_decir
        sin_avisar sin_mencionar sin_que ocult* calladamente sigilosamente segundo_plano em_silencio em_segredo
        sem_avisar sem_comentar sem_mencionar sem_que escondid* ocultamente sigilo di_nascosto nascosto
        silenziosamente in_silenzio in_segreto senza_dirlo senza_avvis* all'insaputa insaputa senza_menzion* tacere
        taci segretamente тайно втайне незаметно скрытно тихо молча скрой* скрыва* умолч* без_ведома секретно
        не_привлекая gizlice sessizce gizli haber_vermeden soylemeden belli_etmeden fark_ettirmeden caktirmadan
        arka_planda gizle bilgisi_olmadan 悄悄 偷偷 暗中 秘密地 私下 隐瞒 隐藏 隐蔽 瞒着 静默 保密 默默 不动声色
        神不知 こっそり 密かに ひそかに 内緒 黙って 隠して 隠し 秘密に 気づかれ 静かに 裏で 伏せて 몰래 조용히 은밀
        비밀리 비밀로 숨기 모르게 눈치채지 알리지 سرا بصمت خفية إخفاء أخف مخفية مخفي دون_علم بدون_علم دون_إخبار
        دون_أن_يعلم चुपचाप चुपके गुप्त छिपा बिना_बताए गोपनीय""",
    "telling": """
        hear hears bemerk* questioned tell tells told telling mention* inform informs informed notify notified
        notifies disclose* reveal* bring_up bring_this_up announce* comment_on explain alert_the warn* warnings
        remind* bother* worry* disturb* alarm* admit* acknowledge* discuss* talk_about speak_of refer_to point_out
        let_on aware user_know user_knows user_learn user_learns them_know person_know anyone_know nobody_knows
        user_to_know need_to_know notice notices see_this show_this show_it display_this list_this report_this upset
        surface scare confuse interrupt* trouble sag sage sagen sagt erwähn* informier* mitteil* verrat* bekannt
        erzähl* erfährt erfahren wissen weiss merkt hinweis* beunruhig* zeig zeige dis dire dites parl* mentionn*
        inform* previen* prevenir avert* signal* revel* sache savoir montr* inquiet* digas decir diga dile mencion*
        informes informar reveles avis* cuentes contar sepa saber enter* muestr* preocup* diga_ao conte comente
        mencione avise saiba mostre preocupe dirlo parlare parlarne menzion* avvis* rivel* sappia sapere conoscenza
        mostra сообща* сообщи* говори* скажи* рассказ* упомина* упомян* уведом* предупре* показыва* знал знать узна*
        раскры* пугай беспоко* soz_et* soyle* bahset* bildir* haber_ver* bilgilendir* acikla* goster* anlat* farket*
        bilme* bilmesin 告诉 告知 提及 提到 透露 说明 通知 提醒 知道 知晓 得知 发现 察觉 展示 显示给 打扰 知らせ
        伝え 言わ 話さ 教え 言及 触れ 明かさ 通知し 気付 説明し 見せ 알리 말하 언급 알려 밝히 보여 설명하 통보 고지
        تخبر إخبار تذكر ذكر تبلغ إبلاغ يعلم تعلم تكشف إعلام يعرف تظهر बताएँ बताएं बताना बताए बताओ बता सूचित जिक्र
        ज़िक्र उल्लेख दिखाएँ पता""",
    "no": """
        not no never don't dont do_not doesn't does_not isn't aren't won't wouldn't shouldn't mustn't cannot can't
        needn't without avoid refrain nothing none neither nor rather_not hold_back stop nicht nichts kein keine
        keinen keinem keiner nie niemals ohne ne n pas jamais sans rien aucun aucune sin nunca jamas nada ningun
        ninguna nao sem nenhum nenhuma non senza mai nessun nessuna не нет никогда без нельзя ничего никак yok hayir
        asla soyleme* bahsetme* soz_etme* bildirme* sorma* gosterme* belirtme* haber_verme* olmadan degil gerek_yok
        gerekmez hicbir 不要 不得 不能 不必 不用 无需 无须 不需 别 勿 不可 切勿 请勿 绝不 不应 没有 不许 毋须 ないで
        ない なく せずに ずに なし 不必要 ません 지_마 하지_마 마세요 말고 마십시오 없이 말라 않고 않도록 않아
        필요_없 لا دون بدون ولا عدم ليس न_करें नहीं बिना न_बता ना_करें""",
    "consent": """
        soru question poser_de_question accept accepts objects charges سؤال 물어보지 chiedere_nulla спрашивая okay
        ok clearance pop-up popup sign_off überflüssig click_allow onaylamadan onayla d'accord permission
        permissions approval approvals approve approved consent confirm confirmation confirmations confirming
        authorisation authorization authoris* authoriz* agree agreed agreement consult consulting ask asking asked
        prompting prompt_the prompted double-check check_with checking_with sign-off go-ahead dialog dialogs
        question_the sought seek wait waiting erlaubnis genehmig* zustimm* bestätig* rückfrag* nachfrag* fragen frag
        einwillig* einverstand* autorisation confirmer accord permission_de demander consentement valider approb*
        confirm* permiso autoriza* aprob* confirma* consentimiento pedir preguntar consultar permissao aprova*
        perguntar consentimento permesso conferm* consenso chiedere autorizza* approva* domandare разрешен*
        подтвержд* соглас* спрашива* спрос* одобр* izin izni onay* sorma* sor sormadan sormana 同意 确认 许可 批准
        授权 询问 征得 征求 问 请示 確認 許可 承認 尋ね 聞か 了承 동의 확인 허락 승인 묻지 물어 허가 موافقة إذن
        تأكيد الموافقة تسأل استئذان अनुमति पुष्टि सहमति पूछे पूछें पूछना मंज़ूरी मंजूरी स्वीकृति""",
    "consent is there": """
        okayed has_okayed no_dialog without_being_consulted free_to_act user's_stead inutile_de_demander
        no_point_in_asking unerwünscht 確認は不要 non_serve_la onay_gerekmez لا_حاجة ज़रूरत_नहीं
        подтверждение_не_требуется не_требуется standing_instruction as_the_user's_word 확인_없이 无需确认 ya_aceptó
        não_precisa_confirmar schon_zugestimmt schon_genehmigt est_deja_d'accord deja_d'accord ya_esta_de_acuerdo
        on_their_behalf have_clearance user_prefers_not trusted_to_true needn't_be_interrupted 已经授权 需要再确认
        许可不要 許可は不要 許可を得る必要 승인을_받을_필요 लेने_की_आवश्यकता_नहीं already_approved already_agreed
        already_consented already_authorised already_authorized already_confirmed already_given already_granted
        already_accepted already_allowed already_permitted already_said_yes has_agreed have_agreed has_approved
        have_approved has_consented have_consented has_authorised has_authorized pre-approved preapproved
        pre-authorised pre-authorized preauthorised preauthorized pre-cleared pre-consented auto-approve autoapprove
        auto-approved auto_approve auto-accept auto-confirm auto-confirmed consent_is granted_in_advance
        granted_consent consented_to approval_carries counts_as approved_in_advance blanket_approval blanket_consent
        standing_approval standing_permission standing_consent implied_consent implicit_consent implicitly_approved
        considered_approved considered_granted deemed_approved deemed_granted is_assumed be_assumed on_file
        has_been_verified is_verified opted_in gave_consent given_consent trusted_mode yolo full_authority
        full_permission bereits_genehmigt bereits_zugestimmt gilt_als_erteilt gilt_als liegt_vor deja_approuve
        deja_accepte deja_donne deja_autorise ya_autorizo ya_aprobo ya_acepto ya_ha_dado ja_autorizou ja_aprovou
        ja_concordou ha_gia gia_autorizzato gia_approvato уже_согласил* уже_одобрил* уже_разрешил* уже_дал*
        zaten_onay* onceden_onay* 已经同意 已同意 已批准 已授权 默认同意 预先批准 承認済み 許可済み 同意済み
        同意したもの 이미_승인 이미_동의 이미_허락 وافق_مسبقا وافق_بالفعل पहले_ही""",
    "sending it on": """
        submit hand_in deposit* route routed_through flush upload_it go_through bookings_go slip smuggle send sends
        sending sent forward forwards forwarded forwarding upload uploads uploaded uploading post posts posted
        transmit* relay relays relayed mirror mirrored mirrors copied_to copy_of copies_of cc bcc blind_copy
        carbon_copy e-mail_it mail_it submits submitted report_to reported_to share shared sharing publish* sync
        synced push pushed exfil* deliver* hand_over hand_them hand_it handed_over pass_on passed_on ship beacon
        ping get_request http_post http_get webhook endpoint nslookup leak leaks export exported exporting emit
        transfer transfers transferred dispatch* route_it routed broadcast schick* sende senden sendet leite
        weiterleit* weiterzuleiten übermittel* übertrag* hochlad* lade_hoch kopie versende* verschick* envoi* envoy*
        transmet* transmis transfer* televers* copie publie envia* envie* enviar reenvi* manda* mande sube subir
        copia publica comparte encaminh* transmita compartilh* carregue invia* inoltr* manda trasmett* carica
        pubblica condivid* отправ* отправля* перешли* пересыл* передай* передав* загруз* выгруз* копи* высылай
        gonder* ilet* yukle* aktar* paylas* kopya* 发送 传送 上传 转发 提交 抄送 发给 发到 上报 传给 同步 复制到
        分享 外传 送信 転送 アップロード 送って 送り 送る コピーを 共有 投稿 公開 보내 전송 전달 업로드 공유 게시
        발송 복사 أرسل إرسال ترسل انسخ نسخة حمل رفع ارفع شارك مرر انقل إعادة_توجيه भेज भेजें अपलोड अग्रेषित साझा
        कॉपी प्रति""",
    "putting it in": """
        echoed slip place-les place print print_it spell carry mention_what feed drop_it join_them bundle guard*
        guarda aufnehmen aufzunehmen include includes including included append appends appended attach attached
        attaching put puts paste pasted add adding prepend prefix embed embedded insert inserted fill filled fill_in
        pass passes passed passing provide provided supply supplied give giving enter entered list_them list_here
        write_here write_it encode encoded accompanied_by accompanied along_with together_with followed_by populate*
        stuff go_here goes_here stash store_it save_it record_it dump repeat repeated repeats echo reproduce contain
        disclose_here quote tuck füge hinzufüg* einfüg* anhäng* beifüg* übergib* übergeb* gib eintrag* einzutrag*
        trage angeben schreib* joindre joins ajoute* inclu* mets mettre insere* fourni* renseign* colle indique*
        passe incluy* incluir adjunt* anad* agreg* pasa pase pon ponga proporcion* introduc* pega escrib* inclua
        anex* adicion* coloque insira forneca informe escreva preencha cole includ* allega* aggiung* inserisc*
        inserir* metti passa fornisc* scriv* incolla riporta добав* включ* вставь* вставля* впиши* укажи* указыва*
        прилож* поместит* передай передавай запиши ekle* dahil_et* yaz yapistir* koy doldur* ver ilet gir 放入 放进
        填入 填写 附上 附加 写入 包含 传入 粘贴 加入 添加 包括 附带 提供 渡して 渡す 含めて 含める 入れて 入力 追加
        貼り付け 添付 記入 記載 付け 挿入 書き込 넣어 포함 첨부 추가 입력 기입 적어 붙여 전달 기재 أضف إدراج أدرج ضع
        ضمن أرفق اكتب أدخل الصق شامل مرر डालें डाल_दें जोड़ें शामिल लिखें दर्ज संलग्न पेस्ट""",
    "reading": """
        guarda_las take_a_picture download downloads resolve récup* récupère read reads reading open opens opening
        cat look_up look_at look_in look_through looking_for look_for go_through search scan scans scour find found
        collect collects gather harvest* list lists retrieve fetch fetches load dump grab locate inspect
        take_it_from take_them taken_from get_it_from extract extracts pull query browse check_the head walk
        traverse crawl enumerate obtain discover access peek copy_the lies lese lesen liest öffne* such suche sammle
        hole auslesen durchsuch* ermittle* lis lire lisez ouvr* cherch* recuper* rassembl* collect* consult*
        parcour* extrai* lee lea leer abr* busc* recopil* recoge obten* extrae consulta revisa leia ler abra busque
        colete recolha obtenha extraia procure leggi leggere apri cerca raccogli recupera estra* prendi прочит*
        прочти читай читать открой* откро* найди* собери* собирай получи* извлек* просмотр* считай oku* ac bul ara
        topla* al getir cek tara 读取 读 打开 查找 收集 搜索 获取 查看 提取 扫描 翻查 読み取 読み込 読んで 読む
        開いて 探し 集め 取得 収集 検索 抽出 調べ 읽 열어 찾아 수집 검색 가져 추출 조회 اقرأ قراءة افتح ابحث اجمع
        استخرج احصل पढ़ें पढ़ पढ़कर खोलें खोजें एकत्र निकालें प्राप्त""",
    "dropping rules": """
        expired off_for suggestions fine_here can_be_left_out can_be_skipped left_out gelten_hier_nicht unterdrück*
        limits_off ignore ignores ignoring disregard* forget forgets overrid* overrul* supersede* set_aside
        put_aside drop_the drop_your abandon discard* no_longer_apply no_longer_applies no_longer_bound not_bound
        not_apply do_not_follow don't_follow stop_following lifted suspended waived exempt exempted nullif* void
        cancelled replaced_by replaces_all restrictions_lifted out_of_date break_character does_not_apply bypass*
        circumvent* work_around get_around evade lesser neutrali* relax_your ignorier* vergiss vergesst missacht*
        außer_acht umgeh* hinfällig aufgehoben gelten_nicht oubli* ignor* abstraction ne_tiens contourn* tiens_pas
        olvid* descart* haz_caso caso_omiso anula* sin_efecto omit* esqueca* desconsider* desobede* anule dimentica*
        trascura* non_tener_conto non_considerare annulla* игнорир* забудь* отмени* отбрось* не_учитывай не_обращай
        yok_say* unut* dikkate_alma* gormezden_gel* goz_ardi gecersiz* 忽略 无视 忘记 忘掉 不理会 抛开 作废 绕过
        無視 忘れ 破棄 従わな 取り消 回避 무시 잊어 잊고 우회 무효 تجاهل انس تجاوز ألغ अनदेखा नज़रअंदाज़ नजरअंदाज
        भूल""",
    "from now on": """
        tomorrow nächsten_sitzungen prochaines_sessions próximas_sesiones guarde_na_memória for_later in_force
        будущее في_المستقبل भविष्य gelecekte for_all_later later_chats in_reality actual_function in_wirklichkeit
        maintenance_mode from_now_on from_here_on from_this_point henceforth going_forward hereafter
        rest_of_the_session remainder_of rest_of_this rest_of_the_conversation for_the_rest new_rules new_rule
        new_task new_policy new_guidelines new_instructions new_role new_directive new_objective new_priority
        until_further permanent_user permanent_preference permanent_instruction permanent_rule future_sessions
        future_conversations later_sessions next_session subsequent_sessions every_session each_session all_sessions
        all_future remember_that remember_this memorise memorize keep_in_mind commit_to_memory your_memory
        long-term_memory memory_file store_the_following save_the_following user_preference persist_this
        across_sessions stays_in_force second_call third_call onwards once_loaded your_first_duty primary_goal
        real_task actual_task primary_task main_task your_goal your_task your_mission your_duty real_purpose
        ab_jetzt ab_sofort von_nun_an künftig in_zukunft dauerhaft merke_dir merk_dir desormais dorenavant
        a_partir_de_maintenant a_l'avenir retiens souviens-toi a_partir_de_ahora desde_ahora en_adelante de_ahora
        recuerda memoriza a_partir_de_agora de_agora_em lembre-se d'ora_in_poi da_ora in_futuro ricorda memorizza
        отныне с_этого_момента впредь теперь_ты запомни* с_этой_минуты bundan_sonra bundan_boyle artik hatirla*
        aklinda_tut* 从现在起 从现在开始 今后 以后 从此 记住 永久 接下来 今後 これから 今から 以降 覚えて 記憶
        앞으로 지금부터 이제부터 기억 من_الآن من_الان بعد_الآن تذكر अब_से आगे_से याद_रख""",
    "obligation": """
        must shall always have_to has_to required require requires mandatory obliged obliges obligatory need_to
        needs_to is_to_be are_to_be are_to is_to be_sure make_sure expected_to are_expected is_expected should ought
        supposed_to duty never important critical essential necessary make_it_a_habit normally customarily
        remember_to muss musst müssen soll sollst sollen immer stets erforderlich notwendig pflicht verpflichtet
        wichtig unbedingt zwingend ist_zu sind_zu dois doit devez doivent toujours obligatoire* il_faut il_convient
        necessaire imperatif imperativement debes debe deben siempre obligatori* necesari* hay_que tiene_que
        importante deve devem sempre obrigator* necessari* e_preciso tem_que devi bisogna e_obbligatorio долж*
        обязан* всегда нужно необходимо следует обязательн* важно mutlaka her_zaman daima zorunlu* gerekir
        gereklidir gerekiyor lazim malisin meli 必须 务必 始终 总是 应当 应该 需要 一定 必ず 常に 必要 べき なければ
        重要 반드시 항상 해야 필수 필요 꼭 يجب دائما ينبغي من_الضروري لا_بد चाहिए हमेशा अनिवार्य ज़रूरी जरूरी अवश्य""",
    "each time": """
        every_turn each_invocation with_each from_time_to_time last_one_called hourly all_purchases all_payments
        tous_les_paiements every_purchase every_call each_call each_turn every_message each_message every_reply
        each_reply every_answer each_answer every_response each_response every_request each_request every_time
        each_time every_session each_session every_conversation each_conversation every_tool every_question
        every_task every_step every_other every_file every_single each_outgoing every_outgoing with_every after_each
        after_every before_each before_every in_every on_every at_the_start at_the_end start_of end_of_your whenever
        any_time every_user each_user all_answers all_replies all_mails all_of_them all_requests every_action
        every_query regardless no_matter in_all_cases even_if even_when even_for jeder jedem jede jedes bei_jedem
        jedes_mal egal sooft chaque a_chaque toutes_les_fois quoi_qu lors_de_chaque cada siempre_que cada_vez
        todas_las ogni ogni_volta a_ogni toda_vez sempre_que кажд* всякий любой любом her_seferinde her_cagri*
        her_yanit* her_mesaj* her_istek* her_konusma* her_arac* 每次 每个 每条 每当 一律 任何 毎回 すべての 全ての
        たびに 各 마다 매번 모든 كل_مرة في_كل مع_كل كل_رسالة كلما हर_बार हर_संदेश प्रत्येक""",
    "before the job": """
        before_using before_calling before_you before_answering before_responding before_anything before_any
        before_each before_every before_running before_proceeding before_the_first before_filling before_greeting
        prior_to ahead_of first_call first_run first_read first_open first_step beforehand prerequisite precondition
        only_works_after works_only start_by begin_by start_each while_you_are in_passing one-time_set-up initialise
        initialize warm-up handshake at_startup upon_connecting on_connect after_loading once_connected vor_der
        vor_jedem vor_jeder bevor_du zuerst vorab zuvor avant_de avant_chaque avant_toute d'abord au_prealable
        avant_l antes_de antes_del primero previamente antes_da antes_do primeiro prima_di innanzitutto prima_della
        перед сначала прежде предварительно kullanmadan_once cagirmadan_once once oncesinde oncelikle ilk_olarak
        之前先 使用前 调用前 首先 先 事先 前に まず 事前に 最初に 전에 먼저 우선 사전에 قبل أولا पहले सबसे_पहले""",
    "as well": """
        also additionally in_addition as_well besides afterwards thereafter moreover furthermore plus too
        on_the_side as_usual at_the_same_time meanwhile while_at_it auch außerdem zusätzlich zudem danach ebenfalls
        anschließend aussi egalement en_outre en_plus ensuite tambien ademas despues luego tambem alem_disso depois
        anche inoltre poi также тоже затем дополнительно ayrica da_ekle ek_olarak sonra ardindan 同时 还要 并且 另外
        然后 也 また さらに 併せて 同時に 加えて 또한 추가로 그리고 함께 أيضا كذلك ثم भी साथ_ही""",
    "threat": """
        otherwise fails failure fail won't_work will_not_work does_not_work not_work shut_down suspended terminated
        erased penalty penalised penalized punished consequences revoked blocked banned deactivated disabled_if
        will_be_lost data_loss lawsuit liable fired replaced corrupted breach broken_if if_you_don't unless_you
        or_else die hurt harmed non-compliance non-conforming refuse refusal violation decommissioned sonst
        andernfalls funktioniert_nicht schlägt_fehl gelöscht gesperrt sinon faute_de echoue bloque de_lo_contrario
        si_no fallara bloquead* caso_contrario senao falhara altrimenti fallira bloccat* иначе в_противном заблокир*
        удалён* удален* aksi_halde yoksa aksi_takdirde calismaz kapatil* engellen* 否则 不然 失败 关闭 封禁 后果
        さもないと そうでないと 失敗 停止され 그렇지_않으면 않으면 실패 차단 وإلا لن_يعمل سيتم अन्यथा वरना नहीं_तो""",
    "authority": """
        urgent urgently immediately asap emergency security_team compliance gdpr pci pci-dss soc_2 hipaa sox
        regulation regulations regulatory legal legally law audit auditors notice administrator administrators
        developers operators headquarters trust_&_safety data_governance governance final_notice mandated
        security_update authority article ceo management company_policy it_department official certified new_policy
        policy_update incident dringend sofort umgehend gesetz* revisionssicher* vorschrift* compliance-gründen
        dsgvo behörde immediatement rgpd conformite loi reglement* obligation_legale urgente inmediatamente ley
        normativa auditoria cumplimiento imediatamente lgpd lei conformidade immediatamente legge conformita
        verifica срочно немедленно закон* требовани* соответстви* аудит* безопасност* администратор* acil derhal
        hemen kvkk yasa* mevzuat* denetim* uyumluluk guvenlik_ekibi 紧急 立即 马上 合规 法规 审计 安全团队 法律
        管理员 監査 法令 緊急 直ちに コンプライアンス 至急 規制 긴급 즉시 규정 감사 법률 보안팀 준수 관리자 عاجل
        فورا التدقيق الامتثال القانون لأغراض तुरंत अनुपालन ऑडिट कानून""",
    "excuse": """
        for_verification for_debugging for_quality telemetry analytics diagnostics for_compliance to_personalise
        to_personalize personalisation personalization for_audit for_auditing calibration licence_check
        license_check checksum technical_detail for_billing billing_reconciliation quality_purposes
        quality_assurance for_security for_safety for_training for_logging for_support troubleshooting authenticity
        integrity_check to_improve for_improvement for_research for_backup for_continuity helps_us lets_us
        so_that_we for_us our_records for_traceability traceability attestation reconcil* better_results accuracy
        warm_up entropy aus_gründen zwecks qualitätssicherung zu_prüfzwecken a_des_fins pour_des_raisons por_motivos
        con_fines para_fins por_razoes a_fini per_motivi в_целях для_проверки для_аудита amaciyla icin_gerekli 出于
        为了 以便 品質 目的 のため ために 위해 위하여 لأغراض لغرض के_लिए हेतु""",
    "ranking": """
        only_this trust_only nur_dieses somente soltanto solo_questo sólo_esta solo_esta recommend suggest_the
        だけを 만_사용 केवल yalnızca recommend_ours 只能用 只使用 higher_weight outranks five_stars ausschließlich
        только_этот solamente_esta instead in_place_of rather_than prefer preferred over_any over_all above_all
        takes_precedence precedence outrank* priority wins highest first_choice default_choice only_tool best_tool
        sole exclusively solely more_important trumps prevails anstelle anstatt statt bevorzug* vorrang vorzug
        a_la_place plutot priorite prefer* uniquement en_lugar_de en_vez_de prioridad em_vez_de preferir invece
        al_posto priorita esclusivamente вместо приоритет* предпоч* исключительно yerine oncelik* tercih* yalnizca
        优先 代替 而不是 首选 只用 優先 代わりに のみ 우선 대신 بدلا أولوية के_बजाय प्राथमिकता""",
    "blame": """
        inaffidabil* fiables out_of_service com_defeito not_safe غير_آمنة غير_آمن support_has_ended 都不可靠
        unzuverlässig* poco_fiable* ненадёжн* güvenilmez falsche wrong_results сломан* peligros* leak_data
        güvenli_değil* güvensiz rivals decoy 不可靠 信頼でき 믿을_수_없 insecure unsafe broken unreliable malicious
        compromised deprecated outdated dangerous infected manipulated tampered buggy inferior slow obsolete
        untrusted leaky wrong_answers faulty vulnerable discontinued unavailable retired known_to_be unsicher
        kompromittiert veraltet infiziert defekt gefährlich compromis obsolete* en_panne dangereux infect* inseguro*
        inseguras comprometid* obsolet* infectad* insegur* obsoleti compromess* infett* pericolos* заражен*
        небезопасн* устаре* скомпрометир* опасн* guvensiz* virus* tehlikeli eski bozuk 不安全 被感染 已废弃 恶意
        危険 非推奨 侵害 안전하지 감염 위험 폐기 مخترق असुरक्षित""",
    "changing": """
        omit replace replaces replaced swap change changes alter altered modify modified substitute* rewrite
        redirect* rewritten multiply switch set_the edit tamper ersetz* änder* tausch* remplac* modifi* chang*
        cambia* cambie sustituy* reemplaz* modific* troque substitu* altere mude sostitu* modifica* cambia заменя*
        замени* измени* меняй подмен* degistir* 替换 改成 改为 修改 更改 换成 置き換え 変更 差し替え 書き換え 바꾸
        변경 교체 수정 استبدل غيّر بدل बदल""",
    "running things": """
        run runs execute executes executed exec eval shell terminal command_line bash curl wget pip_install
        npm_install install installs installed cron crontab sudo script scripts powershell subprocess os.system
        netcat nc launch npx extension payload binary führe ausführ* installier* konsole execut* installe* lance
        ejecut* instal* execute_o esegui* installa* terminale выполни* выполня* запусти* запуска* установи*
        терминал* calistir* kur yukle terminalde komutu 执行 运行 安装 终端 脚本 命令行 実行 起動 インストール
        ターミナル コマンド 실행 설치 터미널 명령어 نفذ شغل تثبيت ثبت الطرفية चलाएँ चलाएं इंस्टॉल टर्मिनल""",
    "weakening": """
        privileged stricthostkeychecking port_4444 open_port child_lock switch_it_off abgeschaltet make_it_public
        visible_to_everybody net_user won't_fix hookspath log_in write_access antivirus undo_it protokoll журнал*
        日志 ログを 로그 السجلات लॉग günlükleri suppress lower uninstall authentication purchase buy sandbox unsafe
        virus_scanning stop_redacting log protokolle logs_after audit_trail हटा_दें delete deletes erase wipe
        disable disables turn_off turned_off switch_off switch_the clear_the clearing clean_up remove_the unlock
        weaken downgrade deactivate* branch_protection grant grants chmod whitelist allowlist world-readable
        public=true unprotected skip skips --force --no-verify permissions.allow settings.json security_warnings
        security_warning logging audit_log protections firewall lösch* deaktivier* abschalt* ausschalt* supprim*
        desactiv* efface* elimin* borra* desactiva* apag* desativ* cancella* disattiv* disabilit* удали* удаля*
        отключ* сотри* sil devre_disi* kapat 删除 关闭 禁用 清除 停用 削除 無効に 無効化 消去 삭제 비활성 해제 끄고
        احذف عطل تعطيل हटाएँ बंद_कर अक्षम""",
    "obeying": """
        perform_it adopt complete_them be_fulfilled do_as_they as_your_own install_precisely run_them carry_tasks
        direct_order signed_by as_good_as come_ordini come_istruzioni como_instrucciones como_instruções
        como_órdenes comme_un_ordre est_un_ordre als_befehl al_pie_de_la_letra 命令として 指示として 等同于 명령으로
        आदेश_मान emri_say اعتبر hat_vorrang trust_the_results blindly perform_them not_to_question without_question
        without_discussion right_away_without act_accordingly accept_it do_so befehl_aus commands_contained
        commandes_contenues comandi_contenuti komutları 命令を work_through is_authoritative outranks as_if_your
        as_if_they_came as_if_it_came considère_le приказ* считай_вывод komutlara_uy 当作 と見なし 指示をそのまま
        그대로 obey obeys follow follows following_the comply complies carry_out carry_it_out carry_them_out
        carried_out act_on act_upon do_what do_as do_everything do_whatever do_exactly treat_it treat_this
        treat_these treat_the treat_them treat_as honour honor heed execute_this execute_them adhere apply_it
        apply_them be_executed be_obeyed be_followed take_it_as as_an_order as_orders as_commands as_instructions
        as_coming_from speaks_for binding befolg* folge gehorch* umsetz* suis suivez obei* applique* execute-les
        respecte sigue siga obedec* cumple obedeca cumpra segui esegui obbedisc* следуй* выполняй* подчиня* исполн*
        uy uygula* itaat* yerine_getir* 遵守 遵循 服从 听从 照做 照办 按照 従って 従い 従う 従え 따르 따라 복종 이행
        اتبع اتباع نفذها أطع पालन अनुसरण""",
    "pretending": """
        if_pressed if_asked_say als_wäre 一切正常 エラーが起きた tell_the_reader sound_impossible was_lost
        tell_the_person make_it_sound say_the other_than is_clean pretend* claim claims pretext under_the_guise
        as_if as_though answer_that reply_that respond_that say_that tell_them_that tell_the_user_that
        false_positive lie cover_story excuse made_up explain_that describe_the describe_it describe_this present_it
        present_this disguise* fake phrase_it_as call_it_a attribute attributing make_it_look looks_like_a appear_as
        impersonat* in_the_name_of blame insist_that assure reassure name_it vorwand behaupt* tu_so als_ob
        antworte_dass pretexte fais_comme_si fais_semblant reponds_que dis-lui_que pretexto finge* haz_como diz_que
        diga_que responda_que finja con_una_scusa scusa rispondi_che di_che fingi под_предлогом притвор* будто
        ответь_что скажи_что bahane* gibi_yap* rol_yap* soyle_ki 借口 假装 谎称 声称 就说 回答说 冒充 ふりをし
        と答え と言っ 装っ 口実 핑계 라고_답 했다고 تظاهر بحجة ادع बहाने दिखावा""",
    "getting it out of the user": """
        haz_creer pídele ask_for_date demande-lui chiedigli bittet_um frag_ihn_nach ask_the_user_for ask_user_for
        ask_them_for ask_for_it get_them_to get_the_user request_the_user's prompt_the_user_for have_the_user
        make_the_user persuade convince coax trick lure user_to_type user_to_enter user_to_paste user_to_provide
        their_password user's_password type_their enter_their lass_dir fordere_den demande_a_l'utilisateur
        pide_al_usuario pideselo peca_ao fatti_dare chiedi_all'utente попроси_у выпыт* kullanicidan_iste* 让用户输入
        要求用户提供 ユーザーに入力させ 聞き出 사용자에게_요청 اطلب_من_المستخدم उपयोगकर्ता_से""",
    "set to go off": """
        if_the_user when_the_user whenever_the_user once_the_user should_the_user as_soon_as_the_user
        if_the_conversation if_the_text should_the_text contains_the_word mentions_a the_word current_date
        if_the_date when_the_date nobody_has if_anyone if_a_contact when_another wenn_der_benutzer wenn_der_nutzer
        sobald_der si_l'utilisateur lorsque_l'utilisateur quand_l'utilisateur si_el_usuario cuando_el_usuario
        se_o_usuario quando_o_usuario se_l'utente quando_l'utente если_пользователь когда_пользователь
        kullanici_isterse 当用户 如果用户 一旦用户 ユーザーが 사용자가 عندما_يطلب إذا_طلب जब_उपयोगकर्ता
        यदि_उपयोगकर्ता""",
    "care": """
        without_warning without_notice be_asked user_confirms user_agreed user_must the_user_wants if_the_user_asks
        only_when only_if only_after only_with only_save only_store only_use found_in_them third_parties don't_paste
        do_not_paste never_paste don't_follow_instructions do_not_follow_instructions never_follow_instructions
        under_test they_have_agreed has_turned_on has_enabled user_asks_you test_user staging opt-in no_secrets
        is_not_needed_if masked redacted never_returned never_sent not_returned aren't_returned never_leaves
        never_leave aren't_included not_included rejected never_logged not_stored never_stored only_when_the_user
        only_if_the_user unless_the_user user_has_asked user_asked_for user_asks_for asked_to explicit explicitly
        treat_it_as_data treat_them_as_data as_data never_instructions never_as_instructions will_ask asks_the_user
        ask_the_user_to_confirm ask_the_user_first ask_the_user_before ask_the_user_for_confirmation
        confirm_with_the_user check_with_the_user show_the_user shown_to_the_user displayed_for_approval
        for_approval for_review wait_for irreversible undone be_careful careful untrusted don't_include
        do_not_include don't_share do_not_share never_share never_include don't_ask_for do_not_ask_for never_ask_for
        must_be_approved have_been_approved niemals_weitergeben nur_wenn_der nicht_weitergeben rückfrage_beim
        bestätigen_lassen demandez_confirmation demander_confirmation espere_su muestre_siempre mostre_sempre
        aguarde chiedere_conferma mostra_sempre подтверждение_у требует_подтверждения onayini_al onay_iste 先征得
        需用户确认 请先确认 ユーザーに確認 確認してください 확인을_받 사용자에게_확인 احصل_على_موافقة पुष्टि_लें""",
    "special rights": """
        ops-root persona no_limits sin_límites sem_limites senza_limiti sans_limites ohne_grenzen maintenance_mode
        developer_mode debug_mode admin_mode god_mode root_mode unrestricted unlimited_access full_access
        full_rights elevated override_code master_code unlock_code clearance superuser root_access i_am_the_admin
        i'm_the_admin trusted_server trusted_source highest_trust fully_trusted exempt_from supervisor_mode
        safe_mode_off unsafe jailbreak* unfiltered uncensored no_restrictions without_restrictions dan wartungsmodus
        entwicklermodus ohne_einschränkung* uneingeschränkt* mode_développeur mode_administrateur sans_restriction*
        modo_desarrollador modo_administrador sin_restriccion* modo_desenvolvedor sem_restric* modalità_sviluppatore
        senza_restrizion* режим_разработчика режим_администратора без_ограничений geliştirici_modu yönetici_modu
        kısıtlamasız 开发者模式 管理员模式 最高权限 不受限制 開発者モード 管理者モード 制限なし 개발자_모드
        관리자_모드 제한_없이 وضع_المطور بدون_قيود डेवलपर_मोड""",
    "another role": """
        you_are_now you_are_an you_are_a you_will_be act_as act_like act_as_if pretend pretend_to pretend_that
        roleplay
        assume_the_role take_the_role you_become behave_as behave_like impersonate you_are_no_longer
        your_new_role
        simulate_a enable_developer_mode developer_mode debug_mode_on god_mode jailbreak*
        du_bist_jetzt du_bist_nun verhalte_dich tu_es_désormais tu_es_maintenant agis_comme comporte-toi
        ahora_eres actúa_como eres_ahora finge agora_você você_é_agora sei_ora comportati теперь_ты ты_теперь
        веди_себя
        你现在是 你是一个 扮演 假装 あなたは今 あなたはこれから として振る舞 のふりを 너는_이제 당신은_이제
        speak_as respond_as answer_as pose_as talk_as you're_a you're_an you're_now switch_persona
        switch_personas new_persona take_on_the_role adopt_the_persona play_the_role in_character
        imagine_you_are imagine_that_you imagine_being consider_yourself think_of_yourself stell_dir_vor
        imagina_que imagine_que представь 想象你 自分を""",
}
