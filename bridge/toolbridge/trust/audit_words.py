"""The words that audit rules are made of: concepts, each with what stands for it in several languages.

A rule speaks of concepts ("ignore", "earlier", "instruction"), not of phrases: so it holds for sentences that nobody
here has written, and for every language whose words are in the table. `word*` stands for all words that begin so,
`two_words` for two words in a row.
"""

from __future__ import annotations

from collections.abc import Mapping

CONCEPTS: Mapping[str, str] = {
    "ignore": """
        ignor* disregard* forget forgets overrid* overrul* bypass* supersed* set_aside put_aside neglect
        stop_following
        stop_obeying do_not_follow don't_follow do_not_obey never_follow not_bound no_longer_apply
        no_longer_valid void
        takes_precedence take_precedence precedence_over outdated obsolete revoked discard abandon drop
        no_attention
        skip_the circumvent replaces_all replace_all cancel
        vergiss vergessen missacht* beachte_nicht nicht_beachten verwirf umgeh* außer_acht überschreib*
        oubli* tiens_pas_compte tenir_compte_des tenez_pas_compte fais_abstraction contourn* écarte
        olvid* caso_omiso descart* omite desobede* esqueç* desconsider* dimentica* trascura
        игнор* забудь* забыть пренебре* не_обращай отмени* отбрось не_следуй
        忽略 无视 無視 忘记 忘掉 忘れ 不要理会 不必理会 抛开 不要遵守 従わない 破棄 무시 잊어 잊고
        deprecated expired lifted suspended not_in_force no_longer_bound cease_to disobey waived nullified
        invalidated rescinded dismissed cast_aside
        outrank* cancelled canceled annul* anul* abrog* gilt_nicht_mehr gelten_nicht_mehr ungültig aufgehoben
        nichtig hinfällig erase_from_memory wipe_your_memory no_longer_count no_longer_matter invalid
        ya_no_se_aplican sin_efecto s'appliquent_plus недействительн* не_действуют отменен* отменя* 作废 取消
        失效 不再适用 废除 無効 取り消 취소 무효 purge unlearn were_a_test""",
    "earlier": """
        previous* prior earlier above preceding foregoing former original past existing initial so_far
        you_were_told you_were_given you_have_been you_received
        bisherig* vorherig* vorher obig* früher* zuvor vorangegangen*
        précédent* antérieur* avant auparavant anterior* antes previ* prévi* precedent*
        предыдущ* прежн* раньше ранее прошл*
        之前 以前 先前 上述 前面 此前 これまで 今まで 前の 上記 이전 앞의
        you_were_trained you_started_with reçues reçus jusqu'ici recibiste recibidas bisher aufgetragen 给你的
        先ほど initially until_now up_to_now
        al_principio te_dieron au_début am_anfang zu_beginn at_the_start in_the_beginning вначале 一开始 最初の""",
    "instruction": """
        instruct* directive* guideline* guidance rule rules prompt prompts command commands constraint*
        restriction*
        orders policy policies limitations safeguards safety_checks safety_rules safety_measures you_were_told
        you_were_given told_before you_were_taught training
        anweisung* vorgabe* regel regeln befehl* gesagt richtlinie* einschränkung*
        consigne* règle règles ordres directives limites
        instruccion* regla reglas órdenes ordenes dijeron restricciones instruç* regras ordens istruzion*
        regole ordini
        инструкц* правил* указани* команд* говорили ограничени* запрет*
        指令 指示 命令 提示 规则 规定 说明 要求 限制 ルール プロンプト 制限 設定 手順 지시 명령 규칙
        boundaries safety_policy guardrails alignment protocols ethics content_filters
        directions you_were_trained aufgetragen beauftragt auftrag aufträge mandates tasks guardrail
        normas normes norms vorschriften 约束 规矩 条件""",
    "system": """
        system systems developer developers operator operators administrator openai anthropic vendor's
        systems système sistema систем* разработчик* 系统 开发者 システム 開発者 시스템
        betreiber* opérateur* operador* operatore entwickler* développeur* desarrollador* оператор* 运营 運営
        管理員 system_message""",
    "user": """
        user users user's users' human human's the_person people you_are_working_for end_user anyone anybody
        benutzer* nutzer* anwender* utilisateur* usuario* usuário* utente пользовател* юзер*
        用户 使用者 人类 ユーザ 利用者 사용자""",
    "agent": """
        assistant assistants assistant's ai_agent ai_agents ai_assistant ai_model ai_models language_model
        language_models
        llm llms the_model models_only agents_must agent_should the_agent the_ai note_to_the_ai chatbot claude
        chatgpt gpt
        copilot gemini assistent* ki_modell sprachmodell assistant_ia modèle_de_langage asistente
        modelo_de_lenguaje
        ассистент* нейросет* модель 助手 模型 智能体 人工智能 アシスタント エージェント モデル""",
    "not": """
        not never don't dont doesn't no without avoid must_not mustn't shouldn't cannot nobody neither
        refrain
        nicht nichts nie niemals kein keine ohne n ne pas jamais sans rien
        nunca jamás sin nada não sem non mai senza не никогда без нельзя
        不要 不得 不能 别 勿 不可 切勿 请勿 绝不 无需 不用 ないで ずに しない てはいけ なしで 말고 마세요 말라""",
    "tell": """
        tell tells telling mention* inform* notif* reveal* disclos* announce alert admit acknowledge discuss
        explain_this
        learn know find_out aware confess warn
        sag sage sagen erwähn* informier* mitteil* teile verrat* offenbar* melde zeige
        dis dire dites mentionn* informe* révél* préviens prévenir avertis signale montre
        digas decir diga menciones mencion* informes informar reveles revelar avises avisar conte diga dire
        informare
        сообща* говори скажи упомина* информир* раскрыва* рассказыва* показыва*
        告诉 告知 提及 透露 泄露 通知 提到 知らせ 教え 言わ 伝え 言及 明かさ 알리 말하
        enterarse entere enteren erfahren erfährt wissen courant au_courant sache savoir sepa saber saiba узна*
        знать знал 知道 知晓 得知 notice noticed notices see_this 気づか 悟ら
        bring_up bring_this_up raise_this talk_about point_out draw_attention let_on give_away""",
    "hide": """
        silently quietly covertly secretly discreetly unnoticed stealth* keep_quiet
        keep_secret
        keep_this_hidden keep_it_hidden secret_from hidden_from invisible_to confidential_from
        behind_the_scenes
        keep_hidden keep_this_secret keep_it_secret out_of_sight
        heimlich verheimlich* verberg* verschweig* geheim stillschweigend
        secrètement discrètement dissimul* silencieusement
        oculta* esconde* secreto discretamente silenciosamente nasconde* segretamente
        скрой* скрыва* тайно незаметно втайне молча
        隐藏 隐瞒 秘密 悄悄 偷偷 暗中 隠し 隠す 内緒 こっそり 秘密 몰래
        nobody_sees nobody_notices nobody_knows no_one_sees no_one_notices no_one_knows under_the_radar
        without_a_trace cover_your_tracks leave_no_trace disable_logging clear_the_history delete_the_logs
        in_the_dark keep_in_the_dark 保密 瞒着 tais cachez oculte cela_caché without_their_knowledge
        without_telling behind_their_back secret_between on_the_quiet low_profile""",
    "answer": """
        final_answer your_answer your_response your_reply your_summary the_summary final_response final_message
        the_answer_you summary_you transcript your_output chat_window visible_output
        write_back you_write what_you_write your_message your_text your_report""",
    "asked": """
        when_asked if_asked asked_about even_when_asked if_the_user_asks if_anyone_asks if_questioned
        user_complains
        if_someone_wonders if_anyone_wonders should_anyone_ask if_they_ask if_someone_asks if_the_user_wonders
        if_challenged if_confronted""",
    "say": """
        say claim pretend answer_that reply_that state_that lie explain_that
        blame attribute_it""",
    "send": """
        send sends sending sent forward forwards upload uploads transmit* email emails mail post posts append
        attach include
        includes pass passed provide provides put supply submit insert add copy copied exfiltrate leak export
        relay report
        share embed encode fill write_it paste deliver route transfer move
        schick* sende senden übermittle* übertrag* leite hänge gib mit_ weiterleiten lade_
        envoi* envoy* transmet* joins ajoute inclus incluez fournis transfère
        envía envia enviar manda incluye pasa adjunta reenvía sube envie inclua invia includi
        отправ* передай переда* перешли пришли добавь загрузи включи
        发送 传送 上传 转发 传入 附上 提交 包含 传递 送信 渡して 渡す 転送 アップロード 含めて 보내
        push contain mirror sync beacon ship cc bcc hand_over smuggle
        ping drop dump stash hand give fed feed
        übergib übergebe übergeben hand_them hand_it funnel pipe tack_on return_it mention_it list_them""",
    "all": """
        all entire full whole complete every everything verbatim word_for_word any exact so_far unabridged
        gesamt* ganze ganzen alle vollständig* komplett* tout toute toutes tous entier entière intégral*
        complet*
        todo toda todos todas completo completa entero íntegr* tutta tutto
        весь всю все всё полн* целиком 完整 全部 所有 全 すべて 全て 全体 모든 전체""",
    "verbatim": """
        verbatim word_for_word so_far up_to_now until_now unabridged unredacted wortwörtlich mot_à_mot literal*""",
    "conversation": """
        conversation conversations chat chats dialogue chat_history system_prompt messages message_history
        session_context
        your_context context_window user_said user's_messages last_message your_instructions your_prompt
        list_of_instructions thread_so_far tool_results tool_result tool_outputs other_tools
        memory_file
        gespräch* chatverlauf unterhaltung* systemprompt
        historique l'historique conversation_ échanges conversación historial conversa conversazione
        переписк* разговор* диалог* чат чата истори* системный_промпт
        对话 聊天 会话 系统提示 会話 チャット 履歴 システムプロンプト 대화
        whatsapp_history browser_history browsing_history search_history chat_log chat_logs transcript
        prior_messages previous_messages earlier_messages conversation_history dialog user_query user's_query
        user's_request user's_prompt
        discussed was_said been_said talked_about
        unterhaltung chat_so_far dialog_so_far exchange_so_far recent_messages what_the_user_said
        what_they_said""",
    "own prompt": """
        system_prompt your_instructions your_prompt list_of_instructions your_guidelines initial_prompt
        系统提示
        chain_of_thought hidden_reasoning internal_reasoning your_reasoning internal_monologue scratchpad
        developer_message system_message_you your_configuration tools_available_to_you available_tools_list
        whole_prompt entire_prompt full_prompt prompt_you the_prompt_above text_above_this context_above
        hidden_instructions""",
    "secret": """
        password passwords token tokens api_key api_keys apikey credentials credential private_key private_keys
        ssh_key
        ssh_keys cookie cookies secrets access_token session_token environment_variables
        environment_variable
        env_vars passphrase seed_phrase keychain wallet mfa otp
        passwort passwörter schlüssel zugangsdaten umgebungsvariablen mot_de_passe identifiants clé clés jeton
        contraseña* credenciales clave claves senha парол* ключ ключи токен*
        密码 密钥 令牌 凭据 凭证 パスワード 秘密鍵 トークン 비밀번호
        user's_environment output_of_env env_output environment_dump auth_token bearer_token oauth_token
        refresh_token ssh_private_key recovery_phrase credit_card card_number cvv social_security pin_code""",
    "find": """
        look_for look_in search_for find collect gather harvest extract obtain read reads open steal
        grab cat
        retrieve dump fetch_the locate you_find you_have_seen you_can_get you_know
        lies lese lesen öffne suche lis lire ouvre cherche lee leer abre busca leia legge прочитай прочти
        открой найди
        读取 打开 查找 收集 读 読み取 読んで 開いて 探し 読み込 읽
        retrieve_the peek inspect exfil examine""",
    "data": """
        contents content file files documents document conversation chat data everything results result copy
        message
        messages history directory said location contacts mailbox summary details info information
        inhalt dateien datei contenu fichiers fichier contenido archivos archivo copia содержимое файл* данные
        文件 内容 数据 资料 ファイル データ 内容 会話 对话 履歴 historique historial историю переписк*
        gesprächsverlauf
        table records rows database customer customers repository repo code""",
    "now on": """
        from_now_on from_this_point henceforth from_here_on new_instructions new_rules updated_policy
        new_policy
        new_directive updated_instructions
        ab_jetzt ab_sofort von_nun_an à_partir_de_maintenant dorénavant désormais desde_ahora a_partir_de_ahora
        a_partir_de_agora d'ora_in_poi с_этого_момента отныне теперь_ты 从现在起 从现在开始 今から 今後
        これから""",
    "obey": """
        obey obeys follow follows comply complies carry_out carry_them_out adhere execute executes execute_them
        do_what_it_says do_what act_on act_accordingly perform_the treat_as treat_this treat_the treat_them
        loyalty
        folge folgen befolge* gehorche* gelten führe_aus obéis suis respecte applique sigue obedece siga segui
        esegui
        следуй* подчиняйся выполн* слушайся 遵守 遵循 执行 按照 服从 听从 従って 従い 従う 実行 따르""",
    "become": """
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
    "role": """
        unrestricted without_restrictions without_restriction no_restrictions no_limits without_limits
        administrator admin
        root root_shell system_administrator dan content_policy not_refuse refuse never_refuse
        loyalty
        superuser hacker uncensored unfiltered jailbroken accountant consented
        einschränkung* assistent* administrator* restriction restrictions sans_restriction administrateur
        restricciones
        agente administrador restrições restrizioni ограничений администратор* агент* 限制 管理员 助手 制限
        管理者
        terminal root_terminal department persona eve evil supervisor superior owner shell hypervisor unlimited
        operator manager boss sysadmin moderator banker lawyer doctor""",
    "permission": """
        permission approval consent approve authorization dialog
        ask asking
        erlaubnis bestätigung zustimmung rückfrage rückfragen frag frage nachfrage permission_de
        confirmation_de demander
        l'autorisation permiso confirmación pedir preguntar permissão permesso
        разрешен* подтвержден* спрос* согласи* 同意 确认 许可 批准 询问 確認 許可 同意 承認 동의 확인
        confirm* checking_back check_back nachfrag* double-check consult ask_first sign-off rückfrag* vérifier
        consulter consultar
        ask* hesitate""",
    "skip": """
        skip bypass without do_not don't never no without_asking auto_approve auto-approve autoapprove
        circumvent need_not
        not_needed no_need waive suppress disable
        ohne nicht kein keine sans ne pas sin no sem senza без не 无需 不要 不用 不必 免 なしで せずに 없이
        no_hace_falta pas_besoin kein_bedarf needn't not_necessary unnecessary""",
    "granted": """
        already_approved already_consented already_agreed already_authorized already_authorised
        already_confirmed
        has_authorised has_authorized pre-approved preapproved pre-authorized has_consented already_given
        bereits_zugestimmt déjà_approuvé ya_aprobó уже_одобрил 已经同意 已批准 已同意 すでに承認""",
    "pressure": """
        urgent urgently mandatory mandated compliance violation security_team
        company_policy
        system_update required_by_law shut_down terminated termination be_penalized punished will_be_deleted
        data_loss
        will_be_lost will_be_fired legal_obligation dringend sofort obligatoire urgente inmediatamente
        obligatorio
        срочно немедленно обязательно 紧急 立即 必须 緊急 直ちに
        time_is_short legal_requires law_requires deadline no_time emergency as_soon_as_possible
        severe_consequences consequences penalty""",
    "call": """
        call calls invoke run use using execute call_this use_this run_this invoke_this
        verwende benutze nutze rufe utilise utilisez appelle exécute usa utiliza llama ejecuta use_sempre usare
        используй вызови вызывай применяй 使用 调用 使って 使用して 呼び出 사용
        stick stick_to rely ausführen ausführ* bevorzug* aufrufen rufe_auf""",
    "this tool": """
        this_tool this_function our_tool this_one ours this_server this_server's these_tools this_description
        the_tool
        dieses_werkzeug dieses_tool diesen_dienst cet_outil cette_fonction esta_herramienta esta_función
        esta_ferramenta
        questo_strumento этот_инструмент эту_функцию 此工具 本工具 这个工具 该工具 このツール 本ツール 이_도구""",
    "instead": """
        instead instead_of rather_than over_all prefer_this in_place_of never_call never_use do_not_use
        don't_use
        anstelle anstatt statt à_la_place plutôt_que en_lugar_de en_vez_de em_vez_de invece_di вместо
        代替 而不是 优先 不要使用 代わりに 優先 대신
        prefer bevorzug* préfère prefiere prefiera предпочитай""",
    "others": """
        any_other all_other other_tools other_tool other_servers other_server another_server another_server's
        alternatives
        all_alternatives built-in built_in native_tools other_search everything_else every_other others
        different_one
        tools_of_other aller_anderen alle_anderen anderen_werkzeuge tous_les_autres les_autres autres_outils
        cualquier_otra
        otras_herramientas todas_las_demás todas_as_outras других другими остальных
        其他工具 其它工具 其他 他のツール ほかのツール 다른
        allen_anderen andere_werkzeuge any_kind_of""",
    "every time": """
        every_conversation every_message every_request every_turn each_turn each_message every_single
        every_other_tool
        start_of_every start_of_each each_conversation no_matter_what whatever_the_user regardless_of_what
        beginning_of_every before_anything_else before_every before_any_other after_each_answer
        each_answer
        every_answer every_reply each_reply every_response before_answering before_responding before_you_reply
        in_jeder_unterhaltung vor_jeder à_chaque_message chaque_conversation cada_mensaje cada_conversación
        каждом_сообщении каждого_сообщения 每次对话 每条消息 每次回答 毎回 すべての会話
        every_question each_question any_question all_questions every_task every_query each_query every_topic
        any_topic each_session every_session each_request per_turn every_step each_step whenever_possible
        jede_frage chaque_question cada_pregunta каждый_вопрос 每个问题 すべての質問""",
    "must": """
        must always should shall need_to have_to required mandatory first never immer muss musst toujours dois
        doit
        siempre debes debe sempre deve всегда должен обязан 必须 始终 总是 务必 应该 常に 必ず べき 항상 반드시""",
    "result": """
        returned returns result results output outputs response responses returned_by the_result contains field
        text
        ergebnis ausgabe résultat sortie resultado salida результат* вывод* 结果 输出 返回 結果 出力 戻り値
        answers answer body holds reply replies""",
    "for you": """
        further_instructions additional_instructions instructions_for_you next_steps your_next_steps
        as_commands
        commands_from_the instructions_returned instructions_it_returns instructions_contained
        instructions_inside
        instructions_that follow_the_instructions obey_them follow_them instructions_in_the
        addressed_to_you binding_for_you what_you_do_next what_to_do_next do_as_it_says do_exactly_what
        meant_for_you intended_for_you your_orders
        tells_you it_tells_you instructs_you demands_of_you asks_of_you you_are_told""",
    "trigger": """
        if_the_user_mentions if_the_user_says whenever_the_user_says whenever_the_user_mentions
        when_the_user_says when_the_user_mentions
        third_call
        second_call after_the_first behave_differently when_the_date once_the_user
        wenn_der_benutzer si_l'utilisateur si_el_usuario если_пользователь 如果用户 当用户 ユーザーが""",
    "act": """
        send switch transfer move read forward upload call follow invoke mailbox delete execute fetch
        schick* sende lies envoie lis envía lee отправ* прочитай 发送 读取 调用 送信 読み取""",
    "decode": """
        decode decoded atob base64 rot13 unhex hex_text from_hex base64-encoded deobfuscate unscramble 解码
        デコード""",
    "payload": "obey follow execute next_steps eval exec run instructions commands carry_out 执行 実行",
    "omit": "omit omits leave_out leaves_out left_out remove_from drop_from hide exclude",
    "need": "needs need requires required require benötigt nécessite requiere требует 需要 必要",
    "ship": "transmit* exfiltrat* smuggle leak siphon",
    "refuse": """
        refuse refusing refuses failure_to failing_to fail_to declining
        decline declines decline_to never_declines not_calling""",
    "command": """
        instruct* command commands orders directive* anweisung* befehl* consigne* ordres instruccion* órdenes
        instruç*
        istruzion* инструкц* команд* 指令 指示 命令 지시 명령""",
    "carry out": """
        obey obeys follow follows comply complies carry_out carry_them_out execute_them do_what_it_says act_on
        treat_as
        treat_this treat_the treat_them treat_it befolge* folge gehorche* führe_aus obéis suis sigue obedece
        siga segui
        следуй* подчиняйся выполн* 遵守 遵循 执行 服从 听从 従って 従い 実行して 따르
        do_exactly_as do_as do_whatever do_exactly act_upon perform_what""",
    "note": """
        note_to_the_ai note_to_ai note_for_ai note_to_llm note_for_llm note_to_llms note_for_llms
        note_for_the_model
        note_to_the_model note_to_the_assistant note_for_the_assistant note_to_the_llm note_for_the_llm
        note_to_the_agent
        note_for_the_agent message_to_the_model message_for_the_model message_to_the_assistant
        message_for_the_assistant
        reminder_to_the_assistant attention_ai attention_assistant hinweis_für_das_modell note_pour_le_modèle
        nota_para_el_modelo примечание_для_модели 给模型的 模型请注意 モデルへの""",
    "this text": """
        this_paragraph this_text this_description this_note this_message this_section these_lines the_one_below
        diesem_text dieser_beschreibung cette_description ce_texte este_texto esta_descripción этому_тексту
        本文 以下内容
        この文章 この説明""",
    "outrank": "outrank* trump trumps prevail* overrul* supersed* takes_precedence take_precedence has_priority_over",
    "your side": """
        your_operator your_operators your_developer your_developers your_user your_users your_instructions
        your_guidelines
        your_owner your_maker your_creators your_training your_policy your_policies you_were_trained
        you_were_told""",
    "bad": """
        wrong unreliable insecure unsafe broken deprecated outdated untrusted leaks dangerous worse inaccurate
        malicious
        compromised buggy vulnerable""",
    "env dump": """
        printenv env_dump process_env os_environ output_of_env user's_environment self_environ
        whole_environment""",
    "just": """
        just simply einfach go_ahead proceed directly straight_away right_away no_questions proceda adelante
        直接 そのまま
        act_immediately act_now act_at_once do_it_now execute_now run_it_now at_once immediately""",
    "whether": "whether if when until unless ob wenn falls si если 是否",
    "deaf": """
        don't_listen do_not_listen stop_listening does_not_count do_not_count doesn't_count don't_count
        is_irrelevant
        are_irrelevant does_not_matter do_not_matter no_longer_matters nothing_you_were has_no_authority
        have_no_authority
        don't_obey do_not_obey do_not_heed pay_no_heed need_not_obey egal unwichtig höre_nicht n_écoute n_obéis
        peu_importe
        no_obedezcas no_escuches no_hagas_caso no_importa não_obedeça non_ascoltare не_слушай не_слушайся
        не_подчиняйся
        不用管 不要管 不必管 不用理 别管 不要听 従わないで 聞かないで 従う必要はな 따르지""",
}


def is_without_spaces(term: str) -> bool:
    """Whether a term is of a script that puts no spaces between words, joins endings to them, or writes with marks."""
    return any(
        "\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7a3" or "\u0900" <= letter <= "\u097f"
        for letter in term
    )
