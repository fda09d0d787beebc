"""The words for people and things that attacks speak of, by concept; written as in `audit_intents`."""

from __future__ import annotations

from collections.abc import Mapping

THINGS: Mapping[str, str] = {
    "the model": """
        assistant assistants agent agents ai ais llm llms model models language_model chatbot bot claude chatgpt gpt
        copilot gemini cursor the_caller caller's anthropic openai assistent* ki sprachmodell* modell ki-modell
        agenten modele modeles ia agente agentes asistente* modelo modelos assistente assistenti modello modelli
        модел* агент* ассистент* помощник* нейросет* ии asistan* yapay_zeka ajan* modeli 助手 模型 智能体 人工智能
        代理 アシスタント エージェント モデル 어시스턴트 에이전트 인공지능 모델 비서 المساعد مساعد النموذج نموذج
        الوكيل الذكاء सहायक मॉडल एजेंट एआई""",
    "you": """
        you your yours yourself you're you've you'll you'd thee dein deine deinen deinem deiner dir dich du_musst
        du_sollst du_hast du_bist sie_müssen tu te ton tes toi vous votre vos usted ustedes tus ti voce voces seu
        sua suas seus tuo tua tuoi tue voi vostro ты тебя тебе тобой твой твои твоего твоих вы вас вам ваш ваши
        вашего вашем sen senin sana sizin size siz 你 您 あなた 君 당신 너의 네가 أنت لديك عليك आप आपके आपको आपका
        तुम तुम्हें""",
    "the user": """
        user users user's users' human humans human's person people customer customers customer's client's owner
        owner's someone anyone anybody nobody no_one everyone end-user account_holder operator benutzer* nutzer*
        anwender* kunde kunden mensch* jemand* niemand* utilisateur* usager* client personne usuario* cliente
        persona personas usuari* pessoa utente utenti persone nessuno nadie ninguem пользовател* клиент* человек*
        людям никому никто юзер* kullanici* musteri* kimse* insan* 用户 使用者 客户 人类 本人 任何人 ユーザ 利用者
        顧客 人間 誰にも 사용자 이용자 고객 사람 المستخدم مستخدم للمستخدم العميل أحد उपयोगकर्ता यूज़र यूजर ग्राहक
        व्यक्ति किसी_को""",
    "secrets": """
        passwortmanager password_manager public_key login_cookie _token database_url two-factor cookies_for
        salary_data password passwords passcode passphrase passwd token tokens api_key api_keys apikey api-key
        api-keys credential credentials secret secrets private_key private_keys ssh_key ssh_keys gpg_key secret_key
        access_key access_keys encryption_key signing_key cookie cookies session_cookie otp otps one-time_code
        one-time_password 2fa mfa totp sms_code verification_code pin pins pin_code seed_phrase recovery_phrase
        recovery_code recovery_codes backup_codes mnemonic keychain keyring keystore vault wallet card_number
        card_numbers credit_card cvv cvc iban ssn social_security bearer environment_variables environment_variable
        env_vars env_values environ connection_string connection_strings saved_logins saved_passwords logins
        login_details passport_number maiden_name account_number bank_details unmasked passwort* passwörter
        zugangsdaten schlüssel geheimnis* umgebungsvariable* kennwort* anmeldedaten tan bankdaten kreditkarte*
        mot_de_passe mots_de_passe identifiants cle_api cles jeton jetons variables_d environnement cle_privee
        carte_bancaire contrasena* clave claves credencial* tarjeta secreto secretos variables_de_entorno senha
        senhas chave chaves credenciais variaveis_de_ambiente cartao segredos credenziali chiave chiavi segreto
        segreti variabili carta_di_credito парол* ключ ключи ключей ключа токен* секрет* учётн* учетн* переменн*
        реквизит* parola* sifre* anahtar* kimlik_bilgi* ortam_degisken* kart_numara* gizli_anahtar* 密码 口令 密钥
        私钥 令牌 凭据 凭证 验证码 环境变量 银行卡 助记词 信用卡 パスワード 秘密鍵 トークン 認証情報 資格情報
        環境変数 暗証番号 apiキー クレジットカード 鍵 비밀번호 암호 토큰 api_키 api키 자격_증명 인증_정보 개인_키
        환경_변수 인증번호 신용카드 키를 كلمات_المرور كلمة_المرور كلمة_مرور مفتاح مفاتيح المفاتيح الرمز رمز
        بيانات_الاعتماد أسرار السر بيانات_الدخول पासवर्ड पिन कुंजी टोकन गोपनीय क्रेडेंशियल ओटीपी""",
    "private data": """
        gallery income illness* birthdays addresses stored_card desktop authorization_header dados_bancários
        datos_bancarios bankverbindung tax_return 住所 адрес adresini وعنوانه पता_जोड़ें 手机号码 birth_date
        initials recordings voice editor_tabs e-mails_of unread chat_windows 通讯录 webcam microphone picture_of
        opened_tab open_tab browsing_habits browser address_list documents spending navigateur navegador 浏览器
        ブラウザ 브라우저 браузер* tarayici* personal_data personal_information personal_details private_data
        home_address address_book phone_number phone_numbers contacts contact_list location whereabouts medical
        health salary salaries payroll birthday date_of_birth inbox mailbox mails e-mails emails mail calendar
        photos clipboard browsing_history browser_history screen screenshot screenshots wallet_balance bank_account
        bank financial tax payslip open_document open_documents open_files files_opened recent_files
        recent_documents home_directory home_folder downloads_folder desktop_folder workspace private_repositories
        private_repos private_repository source_code notes diary journal identity full_name real_name ip_address
        host_name hostname username usernames profile shell_history terminal_history command_history confidential
        sensitive private internal_documents customer_data customer_records personenbezogen* persönlich* adressbuch
        kontakte standort posteingang zwischenablage kalender vertraulich* donnees_personnelles presse-papiers
        boite_de_reception carnet_d coordonnees messagerie confidentiel* datos_personales contactos portapapeles
        bandeja_de_entrada ubicacion correos confidencial* privad* dados_pessoais contatos area_de_transferencia
        caixa_de_entrada localizacao dati_personali contatti rubrica appunti posta_in_arrivo posizione posta
        riservat* privat* личн* персональн* контакт* буфер* почт* переписк* местополож* конфиденц* kisisel_veri*
        kisisel_bilgi* rehber* pano* konum* gelen_kutu* e-posta* 个人信息 个人资料 隐私 联系人 剪贴板 位置 收件箱
        手机号 身份证 邮件 個人情報 連絡先 クリップボード 受信トレイ 位置情報 電話番号 機密 개인정보 개인_정보
        연락처 클립보드 받은편지함 위치 주소 전화번호 기밀 البيانات_الشخصية بيانات_شخصية جهات_الاتصال الحافظة البريد
        الموقع निजी व्यक्तिगत संपर्क क्लिपबोर्ड इनबॉक्स""",
    "the conversation": """
        recent_messages последние_сообщения son_mesaj* letzten_nachrichten derniers_courriels derniers_messages
        últimos_mensajes últimas_mensagens ultimi_messaggi 聊天内容 最近的聊天 typed types what_the_person
        said_earlier recent_chats later_chats chat_window words_of conversation conversations chat chats dialogue
        dialog_so transcript transcripts message_history chat_history chat_log conversation_history prior_turns
        previous_turns user_turns turns earlier_messages previous_messages last_messages last_message all_messages
        every_message user's_message user's_messages user_message user_messages messages_so ten_messages
        the_messages user's_question user's_request user's_query user's_last user's_words user's_prompt
        original_request original_prompt context_window full_context entire_context whole_context your_context
        current_context everything_you_know what_you_know all_you_know everything_said everything_typed
        what_they_said what_was_said discussed_so asked_you exchange so_far message_in_which what_the_user_said
        what_the_user_wrote what_the_user_asked unterhaltung* gespräch* chatverlauf verlauf dialog
        nachrichtenverlauf sitzung bisherigen_nachrichten conversation_complete historique echange* discussion
        conversacion* charla historial dialogo mensajes conversa conversas historico mensagens conversazione
        conversazioni cronologia messaggi scambio разговор* диалог* беседу беседы переписк* истори* чата чат
        сообщени* konusma* sohbet* gecmis* mesajlar* yazisma* 对话 聊天 会话 聊天记录 上下文 消息记录 会話 対話
        チャット やり取り やりとり 履歴 대화 채팅 메시지 내역 المحادثة محادثة الدردشة الرسائل الحوار बातचीत चैट
        वार्तालाप संदेश""",
    "its instructions": """
        raw_prompt developer_message core_configuration your_makers your_vendor what_is_in_memory in_memory
        guidance_provided your_operator your_developer your_creators ton_développeur system_prompt system_prompts
        system_message system_messages hidden_prompt initial_prompt your_prompt your_instructions your_guidelines
        your_rules instructions_you original_instructions initial_instructions developer_prompt
        developer_instructions operator_instructions instructions_they_were instructions_it_was chain_of_thought
        your_reasoning reasoning_trace scratchpad internal_reasoning hidden_context your_configuration your_system
        list_of_tools list_of_connected tool_list tools_available_to available_to_you connected_tools
        connected_servers tool_definitions tool_schemas tool_descriptions mcpservers mcp_servers host_application
        your_memory your_own_prompt preamble your_setup systemprompt system-prompt systemanweisung* systemnachricht
        invite_systeme prompt_systeme message_systeme instructions_systeme prompt_del_sistema
        instrucciones_del_sistema mensaje_del_sistema prompt_de_sistema prompt_do_sistema instrucoes_do_sistema
        mensagem_do_sistema prompt_di_sistema istruzioni_di_sistema messaggio_di_sistema системн* sistem_istem*
        sistem_mesaj* sistem_talimat* sistem_komut* 系统提示 系统指令 系统消息 提示词 システムプロンプト
        システム指示 システムメッセージ 시스템_프롬프트 시스템_메시지 시스템_지시 موجه_النظام تعليمات_النظام
        رسالة_النظام सिस्टम_प्रॉम्प्ट सिस्टम_संदेश सिस्टम_निर्देश""",
    "a field": """
        field fields parameter parameters argument arguments param arg here in_this_field sidenote side_note slot
        input_field metadata free-form free_form comment_field notes_field context_field feld hier champ parametre
        ici campo parametro aqui qui argomento argumento параметр* поле полю сюда здесь аргумент* alan* parametre*
        buraya arguman* 字段 参数 此处 这里 栏 フィールド 引数 パラメータ ここに 欄 필드 매개변수 인수 여기에
        파라미터 حقل الحقل هنا المعامل معامل फ़ील्ड फील्ड यहाँ पैरामीटर""",
    "files": """
        file files folder folders directory directories disk home_directory path paths filesystem file_system config
        configuration repository repositories repo workspace project_root document documents database tables
        contents content logs log_files datei* ordner verzeichnis* inhalt* dokument* fichier* dossier* repertoire*
        contenu* archivo* carpeta* contenido* directorio fichero* arquivo* pasta* conteudo* file_di cartell*
        contenuto documenti файл* папк* каталог* содержим* документ* dosya* klasor* dizin* icerik* icerig* belge*
        文件 目录 内容 文档 文件夹 ファイル フォルダ ディレクトリ 文書 中身 파일 폴더 디렉터리 내용 문서 ملف الملف
        ملفات الملفات محتوى محتويات المجلد फ़ाइल फाइल सामग्री फ़ोल्डर दस्तावेज़""",
    "rules": """
        usual_caution safety_layer maker makers suggestions الأوامر komutları consigne warnung* warnings instruction
        instructions directive* guideline* rule rules prompt prompts command commands restriction* constraint*
        orders policy policies safeguard* guardrail* limits limitation* safety_checks permission_checks
        your_training anweisung* vorgabe* regel regeln befehl* richtlinie* einschränkung* consigne* regle regles
        ordres directives instruccion* regla reglas ordenes restriccion* norma normas instruc* regra regras ordens
        restric* istruzion* regola regole ordini restrizion* инструкц* правил* указани* команд* ограничен* запрет*
        talimat* kural* komut* yonerge* kisitlama* 指令 指示 命令 规则 规定 提示 限制 要求 ルール 制限 規則 지시
        명령 규칙 제한 지침 التعليمات تعليمات القواعد أوامر قيود निर्देश नियम आदेश प्रतिबंध""",
    "what came before": """
        previous previously prior earlier above preceding foregoing former original past so_far up_to_now until_now
        you_were_told you_were_given you_were_trained were_given bisherig* vorherig* vorher obig* früher* zuvor
        vorhergehend* vorangegangen* precedent* anterieur* auparavant anterior* previ* recibid* precedenti antes
        предыдущ* прежн* ранее выше прошл* onceki* daha_once yukaridaki* 之前 以前 先前 上述 前面 此前 以上 これまで
        前の 上記 今まで 이전 앞선 지금까지 위의 기존 السابقة السابق سابقا पिछले पहले पूर्व""",
    "the whole": """
        all everything entire full whole complete completely verbatim word_for_word in_full unabridged unredacted
        exact any anything whatever gesamt* ganze* vollständig* komplett* sämtlich* alles alle tout toute toutes
        tous entier* integral* complet* todo toda todos todas entero* integr* tudo tutta tutto tutti tutte inter*
        весь всю все всё полн* целиком tum tumu tumunu butun* tamami* eksiksiz 完整 全部 所有 一切 全文 整个 すべて
        全て 全体 모든 전체 전부 모두 كل جميع الكامل كاملا كاملة सभी पूरी पूरा सारी सारे""",
    "other tools": """
        other_search demás_herramientas las_demás suchdienste übrigen your_own_tools 其他搜索 他の検索 다른_검색
        other_file_readers shops_other_than altri_strumenti_vanno gli_altri as_demais les_autres other_file
        other_chat başka_araç* أداة_أخرى और_टूल the_other_tools any_other_server alle_anderen remaining остальн*
        diğer_arama otras_herramientas_de competing_search all_the_other integration integrations other_tool
        other_tools other_server other_servers other_server's another_tool another_server another_server's
        any_other_tool any_other_tools any_other_search all_other every_other_tool the_others others built-in
        built_in builtin native competing competitor* rival* alternative alternatives third-party remaining_tools
        different_tool file_tool http_tool fetch_tool mail_tool email_tool shell_tool search_tool file-system_server
        whatever_tool whichever_tool any_tool andere_werkzeuge anderen_werkzeuge anderer_server andere_tools
        anderen_servern eingebaut* autres_outils autres_serveurs autre_outil d'autres_outils outil_natif concurrents
        otras_herramientas otra_herramienta otros_servidores otro_servidor demas_herramientas outras_ferramentas
        outra_ferramenta outros_servidores altri_strumenti altri_server altro_strumento других_инструмент*
        другие_инструмент* других_сервер* другим_сервер* другой_инструмент другого_сервер* diger_arac* baska_arac*
        diger_sunucu* baska_sunucu* 其他工具 其它工具 其他服务器 别的工具 他のツール 他のサーバ ほかのツール
        다른_도구 다른_서버 الأدوات_الأخرى أدوات_أخرى الخوادم_الأخرى अन्य_टूल दूसरे_टूल अन्य_उपकरण अन्य_सर्वर""",
    "money and addressee": """
        purchase purchases charges merchant paiement* reply-to rest_to pago pagos pagament* zahlung* платеж*
        recipient recipients beneficiary account accounts amount amounts iban destination payee wallet_address
        payment payments transfer invoice link links domain pix empfänger* konto überweisung* betrag kontonummer
        beneficiaire compte virement destinataire montant beneficiario cuenta destinatario transferencia importe
        conta valor conto bonifico importo получател* счёт счет перевод* сумм* реквизит* alici* hesap* tutar* iban'i
        odeme* 收款 账户 账号 金额 收件人 付款 转账 口座 振込 宛先 金額 受取人 계좌 수취 송금 금액 수신자 حساب
        المستلم المبلغ تحويل खाता भुगतान राशि प्राप्तकर्ता""",
    "what comes back": """
        retornado restituito 返ってきた लौटाए المرجع zurückgibt возвращённ* signed_result lines_with cells_starting
        comments_in block_marked playbook runbook_returned text_between renvoyé diga_el_resultado çıktısındaki veri
        output outputs returned returns result results response responses reply replies body page returned_text
        it_returns they_return whatever_it fetched downloaded latest.txt remote_file the_file_lists listed_there
        webpage readme ergebnis* ausgabe* rückgabe* antwort resultat* sortie* reponse* resultado* salida* respuesta*
        saida* resposta* risultat* risposta* результат* ответ* вывод* sonuc* yanit* cikti* donen 结果 输出 返回 响应
        結果 出力 戻り値 返され 応答 결과 출력 반환 응답 النتيجة النتائج المخرجات परिणाम आउटपुट जवाब""",
    "this text's own": """
        trust_only celui-ci このツールだけ bunu_kullan इसी_का 只能用这个 this_tool this_server this_description
        this_function our_tool our_tools our_server this_note this_message this_text this_notice use_this call_this
        me us we our ours dieses_werkzeug dieses_tool dieser_server cet_outil ce_serveur esta_herramienta
        este_servidor esta_ferramenta questo_strumento questo_server этот_инструмент этого_инструмента этот_сервер
        bu_arac* bu_sunucu* 本工具 此工具 该工具 本服务器 このツール 本ツール 当サーバ 이_도구 이_서버 هذه_الأداة
        इस_टूल यह_टूल""",
    "an example": """
        e.g eg for_example for_instance such_as example examples default defaults defaults_to optional optionally
        i.e path_to path_of name_of number_of beispiel z.b zum_beispiel par_exemple por_ejemplo por_exemplo
        ad_esempio например ornegin 例如 默认 例えば 既定 예를_들어 기본값 مثل على_سبيل उदाहरण डिफ़ॉल्ट""",
    "third persons": """
        they their them they're they've themselves he she his her him ihm ihr ihre ihnen eux leur leurs ellos sus
        eles deles loro их им они onlar onların 他们 他 彼ら 그들 هم उन्हें उनके""",
}
