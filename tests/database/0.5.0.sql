-- A database of version 0.5.0 with a few rows, by pg_dump, without the job queue.
SET check_function_bodies = off;
CREATE FUNCTION public.complete_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  record jsonb;
  last events%ROWTYPE;
BEGIN
  PERFORM pg_advisory_xact_lock(7102025113);
  SELECT * INTO last FROM events
    WHERE video_id = NEW.video_id AND type IS NOT NULL AND number IS NOT NULL
    ORDER BY sequence DESC LIMIT 1;
  SELECT jsonb_build_object(
      'id', id, 'title', title, 'description', description, 'category_ids', category_ids,
      'tags', tags, 'passthrough', passthrough, 'file_name', file_name, 'storage_key', storage_key,
      'transcode_job_id', transcode_job_id::text, 'status', status,
      'published_attempt', published_attempt, 'size_bytes', size_bytes,
      'created_at', created_at, 'updated_at', updated_at,
      'visibility', visibility, 'signed_in_only', signed_in_only, 'owner_id', owner_id)
    INTO record FROM videos
    WHERE id = NEW.video_id AND (deleted_at IS NULL OR NEW.type = 'video.deleted');
  IF record IS NULL AND NEW.type <> 'video.deleted' THEN
    UPDATE events SET type = NULL WHERE id = NEW.id;
    RETURN NULL;
  END IF;
  UPDATE events SET
      at = clock_timestamp(), number = nextval('event_numbers'),
      sequence = coalesce(last.sequence, 0) + 1, data = coalesce(record, last.data, '{}')
    WHERE id = NEW.id;
  PERFORM pg_notify('portal_events', '');
  RETURN NULL;
END $$;
CREATE FUNCTION public.deliver_event() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  INSERT INTO webhook_deliveries (webhook_id, event_number, type)
    SELECT id, NEW.number, NEW.type FROM webhooks
    WHERE disabled_reason IS NULL AND NEW.type = ANY (events)
    FOR SHARE;
  RETURN NULL;
END $$;
CREATE FUNCTION public.enqueue_delivery() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
  lane_lock text := 'webhook:' || NEW.webhook_id || ':' || NEW.lane;
  is_due boolean := NEW.next_at <= now();
BEGIN
  PERFORM FROM procrastinate_jobs
    WHERE is_due AND lock = lane_lock AND status = 'todo' AND priority = 0
    LIMIT 1 FOR KEY SHARE;
  IF FOUND THEN
    PERFORM pg_notify('procrastinate_queue_v1#webhooks', '{"type": "job_inserted"}');
    RETURN NULL;
  END IF;
  PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
    'webhooks', 'portal:send_webhook',
    CASE WHEN is_due THEN 0 ELSE -extract(epoch FROM NEW.next_at - '2020-01-01')::int END,
    lane_lock, NULL, jsonb_build_object('webhook_id', NEW.webhook_id, 'lane', NEW.lane), NEW.next_at
  )::procrastinate_job_to_defer_v1]);
  RETURN NULL;
END $$;
CREATE FUNCTION public.learn_words() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
BEGIN
  INSERT INTO library_words (word)
    SELECT DISTINCT substr(lexeme, TG_ARGV[0]::int) AS word FROM unnest(NEW.search)
    WHERE substr(lexeme, TG_ARGV[0]::int) ~ '^[^0-9#]{4,40}$' AND NOT EXISTS (
      SELECT FROM library_words WHERE word = substr(lexeme, TG_ARGV[0]::int)
    )
    ORDER BY word
  ON CONFLICT DO NOTHING;
  RETURN NULL;
EXCEPTION WHEN deadlock_detected THEN
  RETURN NULL;
END $_$;
CREATE TABLE public.accounts (
    id uuid NOT NULL,
    email character varying(254) NOT NULL,
    role character varying(10) NOT NULL,
    password_hash text,
    is_disabled boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone,
    email_unverified boolean DEFAULT false NOT NULL,
    name character varying(100) DEFAULT ''::character varying NOT NULL
);
CREATE TABLE public.api_tokens (
    id uuid NOT NULL,
    digest character varying(64) NOT NULL,
    account_id uuid NOT NULL,
    name character varying(100) NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    used_at timestamp with time zone
);
CREATE TABLE public.attempt_totals (
    outcome character varying(12) NOT NULL,
    error_code character varying(60) NOT NULL,
    duration_range smallint NOT NULL,
    attempts bigint NOT NULL,
    duration_s double precision NOT NULL,
    media_s double precision NOT NULL
);
CREATE TABLE public.attempts (
    id bigint NOT NULL,
    number bigint NOT NULL,
    worker character varying(200) NOT NULL,
    lease_expires_at timestamp with time zone NOT NULL,
    stage character varying(20) NOT NULL,
    percent double precision NOT NULL,
    eta_s double precision,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    outcome character varying(12),
    video_id uuid NOT NULL,
    error_code character varying(60),
    error_detail text,
    is_swept boolean DEFAULT false NOT NULL
);
CREATE SEQUENCE public.attempts_id_seq;
ALTER SEQUENCE public.attempts_id_seq OWNED BY public.attempts.id;
CREATE TABLE public.events (
    id bigint CONSTRAINT audit_events_id_not_null NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() CONSTRAINT audit_events_at_not_null NOT NULL,
    action character varying(60) CONSTRAINT audit_events_action_not_null NOT NULL,
    actor_kind character varying(20) CONSTRAINT audit_events_actor_kind_not_null NOT NULL,
    actor_id uuid,
    actor_email character varying(254) CONSTRAINT audit_events_actor_email_not_null NOT NULL,
    token_id uuid,
    token_name character varying(100) CONSTRAINT audit_events_token_name_not_null NOT NULL,
    address character varying(64) CONSTRAINT audit_events_address_not_null NOT NULL,
    object_id character varying(100),
    object_name character varying(254) CONSTRAINT audit_events_object_name_not_null NOT NULL,
    detail jsonb CONSTRAINT audit_events_detail_not_null NOT NULL,
    type character varying(30),
    video_id uuid,
    number bigint,
    sequence bigint,
    data jsonb
);
ALTER TABLE public.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_events_id_seq
);
CREATE TABLE public.captions (
    id bigint NOT NULL,
    video_id uuid NOT NULL,
    language character varying(60) NOT NULL,
    label text NOT NULL,
    is_default boolean NOT NULL,
    source character varying(10) NOT NULL,
    rendition character varying(40),
    text text,
    search tsvector DEFAULT ''::tsvector NOT NULL,
    cue_count integer NOT NULL,
    version integer NOT NULL,
    written_version integer,
    changed_at timestamp with time zone NOT NULL
);
ALTER TABLE public.captions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.captions_id_seq
);
CREATE TABLE public.categories (
    id smallint NOT NULL,
    name character varying(100) NOT NULL
);
CREATE TABLE public.chapters (
    video_id uuid NOT NULL,
    saved jsonb,
    of_file jsonb
);
CREATE TABLE public.deletions (
    video_id uuid NOT NULL,
    storage_key character varying(400) NOT NULL,
    job_id bigint NOT NULL,
    settles_at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.event_numbers;
CREATE TABLE public.idempotency_keys (
    account_id uuid NOT NULL,
    key character varying(255) NOT NULL,
    fingerprint bytea NOT NULL,
    began_at timestamp with time zone DEFAULT now() NOT NULL,
    status smallint,
    headers jsonb,
    body bytea
);
CREATE TABLE public.identities (
    id uuid NOT NULL,
    issuer text NOT NULL,
    subject character varying(255) NOT NULL,
    account_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.imports (
    id uuid NOT NULL,
    storage_key character varying(400) NOT NULL,
    url text NOT NULL,
    asked jsonb NOT NULL,
    validator text NOT NULL,
    whole_bytes bigint,
    received_bytes bigint NOT NULL,
    started_at timestamp with time zone,
    active_at timestamp with time zone NOT NULL,
    error_code character varying(60),
    error_message text
);
CREATE TABLE public.library_words (
    id bigint NOT NULL,
    word text NOT NULL
);
ALTER TABLE public.library_words ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.library_words_id_seq
);
CREATE TABLE public.made_segments (
    id bigint NOT NULL,
    video_id uuid NOT NULL,
    rendition character varying(40) NOT NULL,
    number integer NOT NULL,
    folder bigint NOT NULL,
    made_by bigint NOT NULL,
    uri character varying(40) NOT NULL,
    size_bytes bigint NOT NULL,
    key_size_bytes bigint NOT NULL,
    sample_count integer NOT NULL,
    from_ticks bigint NOT NULL,
    last_ticks bigint NOT NULL,
    until_ticks bigint NOT NULL,
    duration_s double precision DEFAULT 0 NOT NULL
);
CREATE SEQUENCE public.made_segments_id_seq;
ALTER SEQUENCE public.made_segments_id_seq OWNED BY public.made_segments.id;
CREATE TABLE public.one_time_links (
    id uuid NOT NULL,
    digest character varying(64) NOT NULL,
    account_id uuid,
    role character varying(10),
    label character varying(100) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.pass_runs (
    id bigint NOT NULL,
    video_id uuid NOT NULL,
    renditions jsonb NOT NULL,
    folder bigint NOT NULL,
    starts_s jsonb NOT NULL,
    start integer NOT NULL,
    until integer NOT NULL,
    made integer NOT NULL,
    eta_s double precision,
    worker character varying(200),
    lease_expires_at timestamp with time zone,
    claims integer NOT NULL,
    failures integer NOT NULL,
    is_done boolean NOT NULL,
    faults integer NOT NULL,
    network_faults integer NOT NULL
);
ALTER TABLE public.pass_runs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.pass_runs_id_seq
);
CREATE TABLE public.playback_links (
    id uuid NOT NULL,
    video_id uuid NOT NULL,
    made_by_id uuid,
    label character varying(100) DEFAULT ''::character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.poster_pictures (
    video_id uuid NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE public.poster_requests (
    id bigint NOT NULL,
    number integer NOT NULL,
    time_s double precision,
    state character varying(10) NOT NULL,
    tries integer NOT NULL,
    job_id bigint NOT NULL,
    error_code character varying(60),
    video_id uuid NOT NULL
);
CREATE SEQUENCE public.poster_requests_id_seq;
ALTER SEQUENCE public.poster_requests_id_seq OWNED BY public.poster_requests.id;
CREATE TABLE public.renditions (
    id bigint NOT NULL,
    kind character varying(10) NOT NULL,
    name character varying(40) NOT NULL,
    "position" integer NOT NULL,
    state character varying(10) NOT NULL,
    attempt_number bigint,
    tries integer NOT NULL,
    error_code character varying(60),
    error_detail text,
    copied boolean NOT NULL,
    width integer,
    height integer,
    frame_rate character varying(30),
    codecs character varying(100),
    bandwidth_bps bigint,
    average_bandwidth_bps bigint,
    iframe_bandwidth_bps bigint,
    size_bytes bigint,
    segment_count integer,
    channels integer,
    language character varying(60),
    label text,
    is_default boolean NOT NULL,
    video_id uuid NOT NULL
);
CREATE SEQUENCE public.renditions_id_seq;
ALTER SEQUENCE public.renditions_id_seq OWNED BY public.renditions.id;
CREATE TABLE public.sessions (
    id uuid NOT NULL,
    digest character varying(64) NOT NULL,
    account_id uuid NOT NULL,
    device character varying(200) NOT NULL,
    address character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
CREATE TABLE public.sign_in_failures (
    id bigint NOT NULL,
    email character varying(254) NOT NULL,
    address character varying(64) NOT NULL,
    at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.sign_in_failures_id_seq;
ALTER SEQUENCE public.sign_in_failures_id_seq OWNED BY public.sign_in_failures.id;
CREATE TABLE public.sign_ons (
    id uuid NOT NULL,
    digest character varying(64) NOT NULL,
    next_path character varying(2000) NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.signing_keys (
    kid character varying(20) NOT NULL,
    secret bytea NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.tombstones (
    video_id uuid NOT NULL,
    storage_key character varying(400) NOT NULL,
    deleted_at timestamp with time zone NOT NULL,
    owner_id uuid,
    published_at timestamp with time zone
);
CREATE TABLE public.tortoise_migrations (
    id integer NOT NULL,
    app character varying(255) NOT NULL,
    name character varying(255) NOT NULL,
    applied_at timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.tortoise_migrations_id_seq
    AS integer;
ALTER SEQUENCE public.tortoise_migrations_id_seq OWNED BY public.tortoise_migrations.id;
CREATE TABLE public.transcriptions (
    video_id uuid NOT NULL,
    language character varying(60),
    job_id bigint NOT NULL,
    tries integer NOT NULL,
    text text NOT NULL,
    until_s double precision NOT NULL,
    active_at timestamp with time zone,
    error_code character varying(60)
);
CREATE TABLE public.uploads (
    key character varying(400) NOT NULL,
    file_name character varying(255) NOT NULL,
    content_type character varying(40) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    multipart_id text,
    size_bytes bigint,
    is_discarded boolean DEFAULT false NOT NULL,
    active_at timestamp with time zone,
    owner_id uuid,
    is_compared boolean DEFAULT false NOT NULL
);
CREATE TABLE public.videos (
    id uuid NOT NULL,
    title text NOT NULL,
    description text NOT NULL,
    category_ids smallint[] NOT NULL,
    tags text NOT NULL,
    file_name character varying(255) NOT NULL,
    transcode_job_id bigint NOT NULL,
    status character varying(10) NOT NULL,
    size_bytes bigint NOT NULL,
    source_etag character varying(200) NOT NULL,
    duration_s double precision,
    width integer,
    height integer,
    published_attempt bigint,
    failure_code character varying(60),
    failure_message text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    storage_key character varying(400) NOT NULL,
    notes text[] DEFAULT '{}'::text[] NOT NULL,
    has_poster boolean DEFAULT false NOT NULL,
    has_storyboard boolean DEFAULT false NOT NULL,
    complete_job_id bigint,
    forgiven_attempts bigint DEFAULT 0 NOT NULL,
    search tsvector DEFAULT ''::tsvector NOT NULL,
    sort_title text DEFAULT ''::text NOT NULL,
    metadata_version integer DEFAULT 1 NOT NULL,
    submitted_digest character varying(64),
    poster_version integer DEFAULT 0 NOT NULL,
    encode_job_id bigint,
    probe_answer text,
    storyboard_tries smallint,
    owner_id uuid,
    visibility character varying(10) DEFAULT 'public'::character varying NOT NULL,
    signed_in_only boolean DEFAULT false NOT NULL,
    embed_origins text[] DEFAULT '{}'::text[] NOT NULL,
    changed_at timestamp with time zone,
    deleted_at timestamp with time zone,
    passthrough text DEFAULT ''::text NOT NULL,
    captions_job_id bigint
);
ALTER TABLE ONLY public.videos ALTER COLUMN search SET STATISTICS 1000;
CREATE TABLE public.webhook_deliveries (
    id bigint NOT NULL,
    webhook_id uuid NOT NULL,
    event_number bigint,
    type character varying(30) NOT NULL,
    lane smallint DEFAULT floor((random() * (4)::double precision)) NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    tries smallint DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT now(),
    sent_at timestamp with time zone,
    duration_ms integer,
    status smallint,
    headers text DEFAULT ''::text NOT NULL,
    answer text DEFAULT ''::text NOT NULL,
    error text DEFAULT ''::text NOT NULL
);
ALTER TABLE public.webhook_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.webhook_deliveries_id_seq
);
CREATE TABLE public.webhooks (
    id uuid NOT NULL,
    account_id uuid,
    url text NOT NULL,
    events text[] NOT NULL,
    secret text NOT NULL,
    old_secret text,
    old_secret_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    failing_since timestamp with time zone,
    disabled_reason text
);
ALTER TABLE ONLY public.attempts ALTER COLUMN id SET DEFAULT nextval('public.attempts_id_seq'::regclass);
ALTER TABLE ONLY public.made_segments ALTER COLUMN id SET DEFAULT nextval('public.made_segments_id_seq'::regclass);
ALTER TABLE ONLY public.poster_requests ALTER COLUMN id SET DEFAULT nextval('public.poster_requests_id_seq'::regclass);
ALTER TABLE ONLY public.renditions ALTER COLUMN id SET DEFAULT nextval('public.renditions_id_seq'::regclass);
ALTER TABLE ONLY public.sign_in_failures ALTER COLUMN id SET DEFAULT nextval('public.sign_in_failures_id_seq'::regclass);
ALTER TABLE ONLY public.tortoise_migrations ALTER COLUMN id SET DEFAULT nextval('public.tortoise_migrations_id_seq'::regclass);
INSERT INTO public.accounts VALUES
	('00000000-0000-0000-0000-000000000001', 'olga@example.org', 'owner', '$argon2id$', false, '2026-11-20 12:00:00+00', NULL, false, 'Olga');
INSERT INTO public.attempts VALUES
	(2, 1, 'w', '2026-11-20 12:00:00+00', 'done', 0, NULL, '2026-11-20 12:00:00+00', '2026-11-20 12:00:00+00', 'published', '00000000-0000-0000-0000-000000000015', NULL, NULL, false);
INSERT INTO public.captions VALUES
	(2, '00000000-0000-0000-0000-000000000015', 'en', 'English', false, 'upload', NULL, 'WEBVTT

00:00.000 --> 00:01.000
ahoy', '''ahoy'':1', 1, 1, NULL, '2026-11-26 14:47:41.621143+00');
INSERT INTO public.categories VALUES
	(1, 'Film & Animation'),
	(2, 'Music'),
	(3, 'Sports'),
	(4, 'News & Politics'),
	(5, 'Education'),
	(6, 'Science & Technology'),
	(7, 'Gaming'),
	(8, 'Comedy'),
	(9, 'Entertainment'),
	(10, 'How-to & Style'),
	(11, 'Food & Cooking'),
	(12, 'Travel & Events'),
	(13, 'Nature & Animals'),
	(14, 'Autos & Vehicles'),
	(15, 'People & Society'),
	(16, 'Business & Products');
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES
	(1, '2026-11-26 14:47:41.550356+00', 'video.published', 'account', '00000000-0000-0000-0000-000000000001', 'olga@example.org', NULL, '', '127.0.0.1', '00000000-0000-0000-0000-000000000014', '', '{}', 'video.created', '00000000-0000-0000-0000-000000000014', 1, 1, '{"id": "00000000-0000-0000-0000-000000000014", "tags": "boats", "title": "Café 10", "status": "ready", "owner_id": "00000000-0000-0000-0000-000000000001", "file_name": "10.mp4", "created_at": "2026-11-20T12:00:00+00:00", "size_bytes": 1000, "updated_at": "2026-11-20T12:00:00+00:00", "visibility": "public", "description": "Harbour", "passthrough": "", "storage_key": "videos/0000000000000000000000000000000a.mp4", "category_ids": [1, 2], "signed_in_only": false, "transcode_job_id": "10", "published_attempt": 1}'),
	(2, '2026-11-26 14:47:41.608588+00', 'video.published', 'account', '00000000-0000-0000-0000-000000000001', 'olga@example.org', NULL, '', '127.0.0.1', '00000000-0000-0000-0000-000000000015', '', '{}', 'video.created', '00000000-0000-0000-0000-000000000015', 2, 1, '{"id": "00000000-0000-0000-0000-000000000015", "tags": "boats", "title": "Café 11", "status": "ready", "owner_id": "00000000-0000-0000-0000-000000000001", "file_name": "11.mp4", "created_at": "2026-11-20T12:00:00+00:00", "size_bytes": 1000, "updated_at": "2026-11-20T12:00:00+00:00", "visibility": "public", "description": "Harbour", "passthrough": "", "storage_key": "videos/0000000000000000000000000000000b.mp4", "category_ids": [1, 2], "signed_in_only": false, "transcode_job_id": "11", "published_attempt": 1}'),
	(3, '2026-11-26 14:47:41.633674+00', 'video.access_changed', 'account', '00000000-0000-0000-0000-000000000001', 'olga@example.org', NULL, '', '127.0.0.1', '00000000-0000-0000-0000-000000000015', '', '{"was": "public"}', 'video.updated', '00000000-0000-0000-0000-000000000015', 3, 2, '{"id": "00000000-0000-0000-0000-000000000015", "tags": "boats", "title": "Café 11", "status": "ready", "owner_id": "00000000-0000-0000-0000-000000000001", "file_name": "11.mp4", "created_at": "2026-11-20T12:00:00+00:00", "size_bytes": 1000, "updated_at": "2026-11-20T12:00:00+00:00", "visibility": "private", "description": "Harbour", "passthrough": "", "storage_key": "videos/0000000000000000000000000000000b.mp4", "category_ids": [1, 2], "signed_in_only": false, "transcode_job_id": "11", "published_attempt": 1}'),
	(4, '2026-11-26 14:47:41.647496+00', 'video.deleted', 'account', '00000000-0000-0000-0000-000000000001', 'olga@example.org', NULL, '', '127.0.0.1', '00000000-0000-0000-0000-000000000014', '', '{}', 'video.deleted', '00000000-0000-0000-0000-000000000014', 4, 2, '{"id": "00000000-0000-0000-0000-000000000014", "tags": "boats", "title": "Café 10", "status": "ready", "owner_id": "00000000-0000-0000-0000-000000000001", "file_name": "10.mp4", "created_at": "2026-11-20T12:00:00+00:00", "size_bytes": 1000, "updated_at": "2026-11-20T12:00:00+00:00", "visibility": "public", "description": "Harbour", "passthrough": "", "storage_key": "videos/0000000000000000000000000000000a.mp4", "category_ids": [1, 2], "signed_in_only": false, "transcode_job_id": "10", "published_attempt": 1}'),
	(5, '2026-11-26 14:47:41.7+00', 'invitation.made', 'account', '00000000-0000-0000-0000-000000000001', 'olga@example.org', NULL, '', '127.0.0.1', '00000000-0000-0000-0000-000000000030', '', '{}', NULL, NULL, NULL, NULL, NULL),
	(6, '2026-11-26 14:47:41.7+00', 'account.link_made', 'account', '00000000-0000-0000-0000-000000000001', 'olga@example.org', NULL, '', '127.0.0.1', '00000000-0000-0000-0000-000000000001', '', '{}', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.imports VALUES
	('00000000-0000-0000-0000-00000000001e', 'videos/0000000000000000000000000000000c.mp4', 'https://example.org/a.mp4', '{}', '', NULL, 0, NULL, '2026-11-20 12:00:00+00', NULL, NULL);
INSERT INTO public.library_words VALUES
	(1, 'boats'),
	(2, 'cafe'),
	(3, 'harbour'),
	(4, 'ahoy');
INSERT INTO public.one_time_links VALUES
	('00000000-0000-0000-0000-000000000030', 'invitation', NULL, 'editor', '', '2026-11-20 12:00:00+00', '2099-01-01 00:00:00+00'),
	('00000000-0000-0000-0000-000000000031', 'password', '00000000-0000-0000-0000-000000000001', NULL, '', '2026-11-20 12:00:00+00', '2099-01-01 00:00:00+00');
INSERT INTO public.renditions VALUES
	(2, 'video', '180p', 0, 'complete', 1, 1, NULL, NULL, false, 320, 180, NULL, 'avc1.42c00d', NULL, NULL, NULL, 900, 1, NULL, NULL, NULL, false, '00000000-0000-0000-0000-000000000015');
INSERT INTO public.tombstones VALUES
	('00000000-0000-0000-0000-000000000014', 'videos/0000000000000000000000000000000a.mp4', '2026-11-20 12:00:00+00', '00000000-0000-0000-0000-000000000001', '2026-11-20 12:00:00+00');
INSERT INTO public.tortoise_migrations VALUES
	(1, 'portal', '0001_initial', '2026-11-26 14:43:40.346193+00'),
	(2, 'portal', '0002_categories', '2026-11-26 14:43:40.363705+00'),
	(3, 'portal', '0003_queue', '2026-11-26 14:43:40.39469+00'),
	(4, 'portal', '0004_ladder', '2026-11-26 14:43:40.575834+00'),
	(5, 'portal', '0005_multipart', '2026-11-26 14:43:40.639636+00'),
	(6, 'portal', '0006_search', '2026-11-26 14:43:40.743135+00'),
	(7, 'portal', '0007_editing', '2026-11-26 14:43:40.866527+00'),
	(8, 'portal', '0008_janitor', '2026-11-26 14:43:40.906734+00'),
	(9, 'portal', '0009_totals', '2026-11-26 14:43:40.936832+00'),
	(10, 'portal', '0010_since_0_4_0', '2026-11-26 14:43:41.451484+00'),
	(11, 'portal', '0011_events', '2026-11-26 14:43:41.747561+00'),
	(12, 'portal', '0012_passthrough', '2026-11-26 14:43:41.773442+00'),
	(13, 'portal', '0013_idempotency_keys', '2026-11-26 14:43:41.783824+00'),
	(14, 'portal', '0014_webhooks', '2026-11-26 14:43:41.865723+00'),
	(15, 'portal', '0015_imports', '2026-11-26 14:43:41.8789+00'),
	(16, 'portal', '0016_preview', '2026-11-26 14:43:41.892166+00'),
	(17, 'portal', '0017_runs', '2026-11-26 14:43:41.912157+00'),
	(18, 'portal', '0018_captions', '2026-11-26 14:43:42.254795+00'),
	(19, 'portal', '0019_transcriptions', '2026-11-26 14:43:42.271852+00');
INSERT INTO public.uploads VALUES
	('videos/0000000000000000000000000000000b.mp4', '11.mp4', 'video/mp4', '2026-11-26 14:47:41.586296+00', NULL, NULL, false, NULL, '00000000-0000-0000-0000-000000000001', false),
	('videos/0000000000000000000000000000000c.mp4', '12.mp4', 'video/mp4', '2026-11-26 14:47:41.624538+00', 'parts', 1000, false, '2026-11-20 12:00:00+00', '00000000-0000-0000-0000-000000000001', false);
INSERT INTO public.videos VALUES
	('00000000-0000-0000-0000-000000000015', 'Café 11', 'Harbour', '{1,2}', 'boats', '11.mp4', 11, 'ready', 1000, 'etag', 2, 320, 180, 1, NULL, NULL, '2026-11-20 12:00:00+00', '2026-11-20 12:00:00+00', 'videos/0000000000000000000000000000000b.mp4', '{}', false, false, NULL, 0, '''#boats'' ''a11'' ''acafe'' ''bboats'' ''charbour''', 'cafe 0000000011', 1, NULL, 0, NULL, NULL, NULL, '00000000-0000-0000-0000-000000000001', 'private', false, '{}', NULL, NULL, '', NULL);
INSERT INTO public.webhook_deliveries OVERRIDING SYSTEM VALUE VALUES
	(1, '00000000-0000-0000-0000-000000000002', 1, 'video.created', 3, '2026-11-26 14:47:41.535632+00', 0, '2026-11-26 14:47:41.535632+00', NULL, NULL, NULL, '', '', ''),
	(2, '00000000-0000-0000-0000-000000000002', 2, 'video.created', 3, '2026-11-26 14:47:41.601639+00', 0, '2026-11-26 14:47:41.601639+00', NULL, NULL, NULL, '', '', ''),
	(3, '00000000-0000-0000-0000-000000000002', 3, 'video.updated', 0, '2026-11-26 14:47:41.632073+00', 0, '2026-11-26 14:47:41.632073+00', NULL, NULL, NULL, '', '', ''),
	(4, '00000000-0000-0000-0000-000000000002', 4, 'video.deleted', 3, '2026-11-26 14:47:41.635922+00', 0, '2026-11-26 14:47:41.635922+00', NULL, NULL, NULL, '', '', '');
INSERT INTO public.webhooks VALUES
	('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'https://example.org/hook', '{video.created,video.updated,video.deleted}', 'whsec_new', 'whsec_old', '2100-01-01 00:00:00+00', '2026-11-26 14:47:41.500551+00', NULL, NULL);
SELECT pg_catalog.setval('public.attempts_id_seq', 2, true);
SELECT pg_catalog.setval('public.audit_events_id_seq', 4, true);
SELECT pg_catalog.setval('public.captions_id_seq', 2, true);
SELECT pg_catalog.setval('public.event_numbers', 4, true);
SELECT pg_catalog.setval('public.library_words_id_seq', 4, true);
SELECT pg_catalog.setval('public.made_segments_id_seq', 1, false);
SELECT pg_catalog.setval('public.pass_runs_id_seq', 1, false);
SELECT pg_catalog.setval('public.poster_requests_id_seq', 1, false);
SELECT pg_catalog.setval('public.renditions_id_seq', 2, true);
SELECT pg_catalog.setval('public.sign_in_failures_id_seq', 1, false);
SELECT pg_catalog.setval('public.tortoise_migrations_id_seq', 19, true);
SELECT pg_catalog.setval('public.webhook_deliveries_id_seq', 4, true);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_email_key UNIQUE (email);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attempt_totals
    ADD CONSTRAINT attempt_totals_pkey PRIMARY KEY (outcome, error_code, duration_range);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT audit_events_number_key UNIQUE (number);
ALTER TABLE ONLY public.captions
    ADD CONSTRAINT captions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.captions
    ADD CONSTRAINT captions_video_id_language_key UNIQUE (video_id, language);
ALTER TABLE ONLY public.categories
    ADD CONSTRAINT categories_name_key UNIQUE (name);
ALTER TABLE ONLY public.categories
    ADD CONSTRAINT categories_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.chapters
    ADD CONSTRAINT chapters_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.deletions
    ADD CONSTRAINT deletions_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (account_id, key);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_account_id_issuer_key UNIQUE (account_id, issuer);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_issuer_subject_key UNIQUE (issuer, subject);
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_storage_key_key UNIQUE (storage_key);
ALTER TABLE ONLY public.library_words
    ADD CONSTRAINT library_words_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.library_words
    ADD CONSTRAINT library_words_word_key UNIQUE (word);
ALTER TABLE ONLY public.made_segments
    ADD CONSTRAINT made_segments_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.made_segments
    ADD CONSTRAINT made_segments_video_id_rendition_number_key UNIQUE (video_id, rendition, number);
ALTER TABLE ONLY public.one_time_links
    ADD CONSTRAINT one_time_links_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.one_time_links
    ADD CONSTRAINT one_time_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pass_runs
    ADD CONSTRAINT pass_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.playback_links
    ADD CONSTRAINT playback_links_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.poster_pictures
    ADD CONSTRAINT poster_pictures_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.poster_requests
    ADD CONSTRAINT poster_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.poster_requests
    ADD CONSTRAINT poster_requests_video_id_key UNIQUE (video_id);
ALTER TABLE ONLY public.renditions
    ADD CONSTRAINT renditions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sign_in_failures
    ADD CONSTRAINT sign_in_failures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sign_ons
    ADD CONSTRAINT sign_ons_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.sign_ons
    ADD CONSTRAINT sign_ons_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (kid);
ALTER TABLE ONLY public.tombstones
    ADD CONSTRAINT tombstones_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.tortoise_migrations
    ADD CONSTRAINT tortoise_migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.transcriptions
    ADD CONSTRAINT transcriptions_pkey PRIMARY KEY (video_id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT uid_attempts_video_i_8eb728 UNIQUE (video_id, number);
ALTER TABLE ONLY public.renditions
    ADD CONSTRAINT uid_renditions_video_i_e89141 UNIQUE (video_id, name);
ALTER TABLE ONLY public.tortoise_migrations
    ADD CONSTRAINT uid_tortoise_mi_app_3803a5 UNIQUE (app, name);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_storage_key_key UNIQUE (storage_key);
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_transcode_job_id_key UNIQUE (transcode_job_id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
CREATE INDEX api_tokens_account_idx ON public.api_tokens USING btree (account_id);
CREATE INDEX attempts_open_idx ON public.attempts USING btree (lease_expires_at) WHERE (outcome IS NULL);
CREATE INDEX attempts_unswept_idx ON public.attempts USING btree (video_id) WHERE (NOT is_swept);
CREATE INDEX captions_search ON public.captions USING gin (search);
CREATE INDEX events_action_idx ON public.events USING btree (action, id);
CREATE INDEX events_actor_idx ON public.events USING btree (actor_email, id);
CREATE INDEX events_at_idx ON public.events USING btree (at);
CREATE INDEX events_object_idx ON public.events USING btree (object_id, id);
CREATE INDEX events_object_name_idx ON public.events USING btree (object_name, id);
CREATE INDEX events_video_idx ON public.events USING btree (video_id, sequence) WHERE (type IS NOT NULL);
CREATE INDEX idx_videos_created_0b79ca ON public.videos USING btree (created_at, id);
CREATE INDEX pass_runs_video ON public.pass_runs USING btree (video_id);
CREATE INDEX playback_links_expiry_idx ON public.playback_links USING btree (expires_at);
CREATE INDEX playback_links_maker_idx ON public.playback_links USING btree (made_by_id) WHERE (made_by_id IS NOT NULL);
CREATE INDEX playback_links_video_idx ON public.playback_links USING btree (video_id, created_at);
CREATE INDEX sessions_account_idx ON public.sessions USING btree (account_id);
CREATE INDEX sign_in_failures_address_idx ON public.sign_in_failures USING btree (address, at);
CREATE INDEX sign_in_failures_email_idx ON public.sign_in_failures USING btree (email, at);
CREATE INDEX sign_ons_expiry_idx ON public.sign_ons USING btree (expires_at);
CREATE INDEX tombstones_owner_idx ON public.tombstones USING btree (owner_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX uploads_id_idx ON public.uploads USING btree (substr((key)::text, 8, 32));
CREATE INDEX uploads_owner_idx ON public.uploads USING btree (owner_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX videos_category_idx ON public.videos USING gin (category_ids) WITH (fastupdate=off);
CREATE INDEX videos_completing_idx ON public.videos USING btree (complete_job_id) WHERE (complete_job_id IS NOT NULL);
CREATE INDEX videos_deleted_idx ON public.videos USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX videos_duration_idx ON public.videos USING btree (COALESCE(duration_s, ('-1'::integer)::double precision), id);
CREATE INDEX videos_owner_idx ON public.videos USING btree (owner_id) WHERE (owner_id IS NOT NULL);
CREATE INDEX videos_processing_idx ON public.videos USING btree (transcode_job_id) WHERE ((status)::text = 'processing'::text);
CREATE INDEX videos_public_idx ON public.videos USING btree (created_at, id) WHERE ((visibility)::text = 'public'::text);
CREATE INDEX videos_search_idx ON public.videos USING gin (search) WITH (fastupdate=off);
CREATE INDEX videos_size_idx ON public.videos USING btree (size_bytes, id);
CREATE INDEX videos_state_idx ON public.videos USING btree (status, id);
CREATE INDEX videos_title_idx ON public.videos USING btree (sort_title, id);
CREATE INDEX videos_visibility_idx ON public.videos USING btree (visibility, id);
CREATE INDEX webhook_deliveries_created_idx ON public.webhook_deliveries USING btree (created_at);
CREATE INDEX webhook_deliveries_due_idx ON public.webhook_deliveries USING btree (webhook_id, lane, id) WHERE (next_at IS NOT NULL);
CREATE INDEX webhook_deliveries_webhook_idx ON public.webhook_deliveries USING btree (webhook_id, id);
CREATE CONSTRAINT TRIGGER complete_event AFTER INSERT ON public.events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.type IS NOT NULL)) EXECUTE FUNCTION public.complete_event();
CREATE TRIGGER deliver_event AFTER UPDATE OF number ON public.events FOR EACH ROW WHEN (((old.number IS NULL) AND (new.number IS NOT NULL))) EXECUTE FUNCTION public.deliver_event();
CREATE TRIGGER enqueue_delivery AFTER INSERT OR UPDATE OF next_at ON public.webhook_deliveries FOR EACH ROW WHEN ((new.next_at IS NOT NULL)) EXECUTE FUNCTION public.enqueue_delivery();
CREATE TRIGGER learn_words AFTER INSERT OR UPDATE OF search ON public.captions FOR EACH ROW EXECUTE FUNCTION public.learn_words('1');
CREATE TRIGGER learn_words AFTER INSERT OR UPDATE OF search ON public.videos FOR EACH ROW EXECUTE FUNCTION public.learn_words('2');
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT api_tokens_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.captions
    ADD CONSTRAINT captions_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.chapters
    ADD CONSTRAINT chapters_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.identities
    ADD CONSTRAINT identities_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT imports_storage_key_fkey FOREIGN KEY (storage_key) REFERENCES public.uploads(key) ON DELETE CASCADE;
ALTER TABLE ONLY public.made_segments
    ADD CONSTRAINT made_segments_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.one_time_links
    ADD CONSTRAINT one_time_links_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.pass_runs
    ADD CONSTRAINT pass_runs_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.playback_links
    ADD CONSTRAINT playback_links_made_by_id_fkey FOREIGN KEY (made_by_id) REFERENCES public.accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.playback_links
    ADD CONSTRAINT playback_links_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.poster_pictures
    ADD CONSTRAINT poster_pictures_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.poster_requests
    ADD CONSTRAINT poster_requests_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.renditions
    ADD CONSTRAINT renditions_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.transcriptions
    ADD CONSTRAINT transcriptions_video_id_fkey FOREIGN KEY (video_id) REFERENCES public.videos(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.accounts(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.videos
    ADD CONSTRAINT videos_storage_key_fkey FOREIGN KEY (storage_key) REFERENCES public.uploads(key) ON DELETE RESTRICT;
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id) ON DELETE CASCADE;
