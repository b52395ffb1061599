"""Tokens of mail, chat, social and telephony services, and the addresses of webhooks that anybody may post to."""

from __future__ import annotations

from reenact.contracts.detector import ENDS, Detector, credential

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_DISCORD = r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}"

DETECTORS: tuple[Detector, ...] = (
    credential("slack_token", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{10,250}"),
    credential("slack_app_token", "xapp-", rf"xapp-[0-9]-[A-Z0-9]{{8,16}}-[0-9]{{8,16}}-[0-9a-f]{{48,80}}{ENDS}"),
    credential(
        "slack_webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/]{20,120})",
        order=40,
    ),
    credential(
        "discord_webhook",
        "discord.com/api/|discordapp.com/api/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/(?P<secret>[0-9]{17,20}/[A-Za-z0-9_\-]{50,100})",
        order=40,
    ),
    credential("discord_token", "Bot M|Bot N|Bot O", rf"Bot (?P<secret>{_DISCORD})", order=40),
    credential(
        "discord_token",
        "discord",
        rf"discord[^\r\n]{{0,80}}?(?<![A-Za-z0-9_\-.])(?P<secret>{_DISCORD})",
        any_case=True,
        order=45,
    ),
    credential(
        "teams_webhook",
        ".webhook.office.com/",
        r"[A-Za-z0-9\-]{1,60}\.webhook\.office\.com/(?P<secret>webhookb2/[A-Za-z0-9@\-/]{60,300})",
        before=60,
        order=40,
    ),
    credential(
        "zapier_webhook",
        "hooks.zapier.com/",
        r"hooks\.zapier\.com/hooks/catch/(?P<secret>[0-9]{4,12}/[A-Za-z0-9]{5,16})",
        order=40,
    ),
    credential(
        "make_webhook",
        ".make.com/",
        rf"hook\.[a-z]{{2}}\d\.make\.com/(?P<secret>[a-z0-9]{{24,40}}){ENDS}",
        before=8,
        order=40,
    ),
    credential(
        "ifttt_webhook",
        "maker.ifttt.com/",
        r"maker\.ifttt\.com/(?:trigger|use)/(?:[A-Za-z0-9_\-]{1,64}/(?:json/)?with/key/)?"
        r"(?P<secret>[A-Za-z0-9_\-]{20,80})",
        order=40,
    ),
    credential("telegram_bot_token", ":AA", rf"[0-9]{{8,10}}:AA[A-Za-z0-9_\-]{{32,34}}{ENDS}", before=10, after=64),
    credential("twilio_key", "|".join(f"SK{digit}" for digit in "0123456789abcdef"), rf"SK[0-9a-f]{{32}}{ENDS}"),
    credential("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_\-]{16,64}\.[A-Za-z0-9_\-]{16,64}"),
    credential("mailgun_key", "key-", rf"key-[0-9a-f]{{32}}{ENDS}"),
    credential("mailchimp_key", "-us", rf"[0-9a-f]{{32}}-us[0-9]{{1,2}}{ENDS}", before=32),
    credential(
        "resend_key",
        "resend",
        rf"resend[^\r\n]{{0,80}}?(?<![A-Za-z0-9])(?P<secret>re_[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{20,28}}){ENDS}",
        any_case=True,
        order=45,
    ),
    credential("brevo_key", "xkeysib-|xsmtpsib-", rf"x(?:key|smtp)sib-[0-9a-f]{{64}}-[A-Za-z0-9]{{16}}{ENDS}"),
    credential("klaviyo_key", "pk_", rf"pk_[0-9a-f]{{34}}{ENDS}"),
    credential("hubspot_token", "pat-na|pat-eu|pat-ap", rf"pat-(?:na|eu|ap)[0-9]{{1,2}}-{_UUID}"),
    credential("intercom_token", "dG9rO", r"dG9rO[A-Za-z0-9+/]{40,120}={0,2}"),
    credential("meta_token", "EAA", rf"EAA[A-Za-z0-9]{{80,400}}{ENDS}"),
    credential("instagram_token", "IGQ|IGAA", r"(?:IGQ|IGAA)[A-Za-z0-9_\-]{80,400}"),
    credential(
        "x_bearer_token",
        "AAAAAAAAAAAAAAAAAAAA",
        r"A{20,24}[A-Za-z0-9]{2,12}A{4,12}[A-Za-z0-9%]{60,160}",
        check=lambda value: "%" in value,
    ),
    credential("dropbox_token", "sl.", r"sl\.(?:u\.)?[A-Za-z0-9_\-]{120,1500}", after=1600),
    credential("salesforce_token", "00D", r"00D[A-Za-z0-9]{12,15}(?:!|%21)[A-Za-z0-9._]{60,160}"),
    credential("onesignal_key", "os_v2_", rf"os_v2_(?:app|org)_[a-z2-7]{{80,120}}{ENDS}"),
    credential("firebase_key", ":APA91b", r"[A-Za-z0-9_\-]{11,24}:APA91b[A-Za-z0-9_\-]{100,200}", before=24),
    credential("twitch_token", "oauth:", rf"oauth:[a-z0-9]{{30}}{ENDS}"),
    credential("vk_token", "vk1.a.", r"vk1\.a\.[A-Za-z0-9_\-]{60,300}"),
    credential("matrix_token", "syt_", rf"syt_[A-Za-z0-9+/=]{{2,120}}_[A-Za-z]{{20}}_[A-Za-z0-9]{{6}}{ENDS}"),
    credential("frameio_token", "fio-u-", r"fio-u-[A-Za-z0-9_\-]{64}"),
    credential("typeform_token", "tfp_", r"tfp_[A-Za-z0-9_\-.=]{40,80}"),
    credential("mapbox_token", "sk.eyJ|tk.eyJ", r"[st]k\.eyJ[A-Za-z0-9_\-]{40,120}\.[A-Za-z0-9_\-]{20,32}", order=40),
    credential("okta_token", "SSWS ", r"SSWS (?P<secret>00[A-Za-z0-9_\-]{40})", order=40),
)
