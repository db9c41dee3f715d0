-- The tables of version 0.5.0, except those of the job queue (`queue.sql`).

-- Accounts, and how people and programs sign in.

CREATE TABLE accounts (
  id uuid PRIMARY KEY,
  email varchar(254) NOT NULL UNIQUE,
  role varchar(10) NOT NULL,
  password_hash text,
  is_disabled boolean NOT NULL,
  created_at timestamptz NOT NULL,
  seen_at timestamptz,
  email_unverified boolean NOT NULL DEFAULT false,
  name varchar(100) NOT NULL DEFAULT ''
);

CREATE TABLE sessions (
  id uuid PRIMARY KEY,
  digest varchar(64) NOT NULL UNIQUE,
  account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  device varchar(200) NOT NULL,
  address varchar(64) NOT NULL,
  created_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL
);
CREATE INDEX sessions_account_idx ON sessions (account_id);

CREATE TABLE api_tokens (
  id uuid PRIMARY KEY,
  digest varchar(64) NOT NULL UNIQUE,
  account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  name varchar(100) NOT NULL,
  scopes text[] NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  used_at timestamptz
);
CREATE INDEX api_tokens_account_idx ON api_tokens (account_id);

CREATE TABLE one_time_links (
  id uuid PRIMARY KEY,
  digest varchar(64) NOT NULL UNIQUE,
  account_id uuid REFERENCES accounts (id) ON DELETE CASCADE,
  role varchar(10),
  label varchar(100) NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);

CREATE TABLE sign_in_failures (
  id bigserial PRIMARY KEY,
  email varchar(254) NOT NULL,
  address varchar(64) NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_address_idx ON sign_in_failures (address, at);
CREATE INDEX sign_in_failures_email_idx ON sign_in_failures (email, at);

CREATE TABLE identities (
  id uuid PRIMARY KEY,
  issuer text NOT NULL,
  subject varchar(255) NOT NULL,
  account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  UNIQUE (account_id, issuer),
  UNIQUE (issuer, subject)
);

CREATE TABLE sign_ons (
  id uuid PRIMARY KEY,
  digest varchar(64) NOT NULL UNIQUE,
  next_path varchar(2000) NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_ons_expiry_idx ON sign_ons (expires_at);

-- Uploads and imports.

CREATE TABLE uploads (
  key varchar(400) PRIMARY KEY,
  file_name varchar(255) NOT NULL,
  content_type varchar(40) NOT NULL,
  created_at timestamptz NOT NULL,
  multipart_id text,
  size_bytes bigint,
  is_discarded boolean NOT NULL DEFAULT false,
  active_at timestamptz,
  owner_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
  is_compared boolean NOT NULL DEFAULT false
);
-- Keys are `videos/<32 hexadecimal digits>.<extension>`; the digits are the upload's id.
CREATE INDEX uploads_id_idx ON uploads (substr(key, 8, 32));
CREATE INDEX uploads_owner_idx ON uploads (owner_id) WHERE owner_id IS NOT NULL;

CREATE TABLE imports (
  id uuid PRIMARY KEY,
  storage_key varchar(400) NOT NULL UNIQUE REFERENCES uploads (key) ON DELETE CASCADE,
  url text NOT NULL,
  asked jsonb NOT NULL,
  validator text NOT NULL,
  whole_bytes bigint,
  received_bytes bigint NOT NULL,
  started_at timestamptz,
  active_at timestamptz NOT NULL,
  error_code varchar(60),
  error_message text
);

-- Videos, and everything that belongs to one.

CREATE TABLE categories (
  id smallint PRIMARY KEY,
  name varchar(100) NOT NULL UNIQUE
);

CREATE TABLE videos (
  id uuid PRIMARY KEY,
  title text NOT NULL,
  description text NOT NULL,
  category_ids smallint[] NOT NULL,
  tags text NOT NULL,
  file_name varchar(255) NOT NULL,
  transcode_job_id bigint NOT NULL UNIQUE,
  status varchar(10) NOT NULL,
  size_bytes bigint NOT NULL,
  source_etag varchar(200) NOT NULL,
  duration_s double precision,
  width integer,
  height integer,
  published_attempt bigint,
  failure_code varchar(60),
  failure_message text,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  storage_key varchar(400) NOT NULL UNIQUE REFERENCES uploads (key) ON DELETE RESTRICT,
  notes text[] NOT NULL DEFAULT '{}',
  has_poster boolean NOT NULL DEFAULT false,
  has_storyboard boolean NOT NULL DEFAULT false,
  complete_job_id bigint,
  forgiven_attempts bigint NOT NULL DEFAULT 0,
  search tsvector NOT NULL DEFAULT '',
  sort_title text NOT NULL DEFAULT '',
  metadata_version integer NOT NULL DEFAULT 1,
  submitted_digest varchar(64),
  poster_version integer NOT NULL DEFAULT 0,
  encode_job_id bigint,
  probe_answer text,
  storyboard_tries smallint,
  owner_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
  visibility varchar(10) NOT NULL DEFAULT 'public',
  signed_in_only boolean NOT NULL DEFAULT false,
  embed_origins text[] NOT NULL DEFAULT '{}',
  changed_at timestamptz,
  deleted_at timestamptz,
  passthrough text NOT NULL DEFAULT '',
  captions_job_id bigint
);
CREATE INDEX idx_videos_created_0b79ca ON videos (created_at, id);
-- `fastupdate = off`: searches don't have to scan a list of pending entries.
CREATE INDEX videos_category_idx ON videos USING gin (category_ids) WITH (fastupdate = off);
-- Every worker polls for the few videos with unfinished work.
CREATE INDEX videos_processing_idx ON videos (transcode_job_id) WHERE status = 'processing';
CREATE INDEX videos_completing_idx ON videos (complete_job_id) WHERE complete_job_id IS NOT NULL;
CREATE INDEX videos_deleted_idx ON videos (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX videos_duration_idx ON videos ((coalesce(duration_s, -1)), id);
CREATE INDEX videos_owner_idx ON videos (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX videos_public_idx ON videos (created_at, id) WHERE visibility = 'public';
CREATE INDEX videos_search_idx ON videos USING gin (search) WITH (fastupdate = off);
CREATE INDEX videos_size_idx ON videos (size_bytes, id);
CREATE INDEX videos_state_idx ON videos (status, id);
CREATE INDEX videos_title_idx ON videos (sort_title, id);
CREATE INDEX videos_visibility_idx ON videos (visibility, id);
-- Detailed statistics let the planner tell a rare word from a frequent one.
ALTER TABLE videos ALTER search SET STATISTICS 1000;

CREATE TABLE renditions (
  id bigserial PRIMARY KEY,
  kind varchar(10) NOT NULL,
  name varchar(40) NOT NULL,
  position integer NOT NULL,
  state varchar(10) NOT NULL,
  attempt_number bigint,
  tries integer NOT NULL,
  error_code varchar(60),
  error_detail text,
  copied boolean NOT NULL,
  width integer,
  height integer,
  frame_rate varchar(30),
  codecs varchar(100),
  bandwidth_bps bigint,
  average_bandwidth_bps bigint,
  iframe_bandwidth_bps bigint,
  size_bytes bigint,
  segment_count integer,
  channels integer,
  language varchar(60),
  label text,
  is_default boolean NOT NULL,
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  CONSTRAINT uid_renditions_video_i_e89141 UNIQUE (video_id, name)
);

CREATE TABLE attempts (
  id bigserial PRIMARY KEY,
  number bigint NOT NULL,
  worker varchar(200) NOT NULL,
  lease_expires_at timestamptz NOT NULL,
  stage varchar(20) NOT NULL,
  percent double precision NOT NULL,
  eta_s double precision,
  started_at timestamptz NOT NULL,
  finished_at timestamptz,
  outcome varchar(12),
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  error_code varchar(60),
  error_detail text,
  is_swept boolean NOT NULL DEFAULT false,
  CONSTRAINT uid_attempts_video_i_8eb728 UNIQUE (video_id, number)
);
CREATE INDEX attempts_open_idx ON attempts (lease_expires_at) WHERE outcome IS NULL;
CREATE INDEX attempts_unswept_idx ON attempts (video_id) WHERE NOT is_swept;

CREATE TABLE made_segments (
  id bigserial PRIMARY KEY,
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  rendition varchar(40) NOT NULL,
  number integer NOT NULL,
  folder bigint NOT NULL,
  made_by bigint NOT NULL,
  uri varchar(40) NOT NULL,
  size_bytes bigint NOT NULL,
  key_size_bytes bigint NOT NULL,
  sample_count integer NOT NULL,
  from_ticks bigint NOT NULL,
  last_ticks bigint NOT NULL,
  until_ticks bigint NOT NULL,
  duration_s double precision NOT NULL DEFAULT 0,
  UNIQUE (video_id, rendition, number)
);

CREATE TABLE pass_runs (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  renditions jsonb NOT NULL,
  folder bigint NOT NULL,
  starts_s jsonb NOT NULL,
  start integer NOT NULL,
  until integer NOT NULL,
  made integer NOT NULL,
  eta_s double precision,
  worker varchar(200),
  lease_expires_at timestamptz,
  claims integer NOT NULL,
  failures integer NOT NULL,
  is_done boolean NOT NULL,
  faults integer NOT NULL,
  network_faults integer NOT NULL
);
CREATE INDEX pass_runs_video ON pass_runs (video_id);

CREATE TABLE poster_requests (
  id bigserial PRIMARY KEY,
  number integer NOT NULL,
  time_s double precision,
  state varchar(10) NOT NULL,
  tries integer NOT NULL,
  job_id bigint NOT NULL,
  error_code varchar(60),
  video_id uuid NOT NULL UNIQUE REFERENCES videos (id) ON DELETE CASCADE
);

CREATE TABLE poster_pictures (
  video_id uuid PRIMARY KEY REFERENCES videos (id) ON DELETE CASCADE,
  content bytea NOT NULL
);

CREATE TABLE captions (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  language varchar(60) NOT NULL,
  label text NOT NULL,
  is_default boolean NOT NULL,
  source varchar(10) NOT NULL,
  rendition varchar(40),
  text text,
  search tsvector NOT NULL DEFAULT '',
  cue_count integer NOT NULL,
  version integer NOT NULL,
  written_version integer,
  changed_at timestamptz NOT NULL,
  UNIQUE (video_id, language)
);
CREATE INDEX captions_search ON captions USING gin (search);

CREATE TABLE transcriptions (
  video_id uuid PRIMARY KEY REFERENCES videos (id) ON DELETE CASCADE,
  language varchar(60),
  job_id bigint NOT NULL,
  tries integer NOT NULL,
  text text NOT NULL,
  until_s double precision NOT NULL,
  active_at timestamptz,
  error_code varchar(60)
);

CREATE TABLE chapters (
  video_id uuid PRIMARY KEY REFERENCES videos (id) ON DELETE CASCADE,
  saved jsonb,
  of_file jsonb
);

CREATE TABLE playback_links (
  id uuid PRIMARY KEY,
  video_id uuid NOT NULL REFERENCES videos (id) ON DELETE CASCADE,
  made_by_id uuid REFERENCES accounts (id) ON DELETE SET NULL,
  label varchar(100) NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX playback_links_expiry_idx ON playback_links (expires_at);
CREATE INDEX playback_links_maker_idx ON playback_links (made_by_id) WHERE made_by_id IS NOT NULL;
CREATE INDEX playback_links_video_idx ON playback_links (video_id, created_at);

-- Deleted videos. Their rows have no foreign keys, because the video's row is gone.

CREATE TABLE deletions (
  video_id uuid PRIMARY KEY,
  storage_key varchar(400) NOT NULL,
  job_id bigint NOT NULL,
  settles_at timestamptz NOT NULL
);

CREATE TABLE tombstones (
  video_id uuid PRIMARY KEY,
  storage_key varchar(400) NOT NULL,
  deleted_at timestamptz NOT NULL,
  owner_id uuid,
  published_at timestamptz
);
CREATE INDEX tombstones_owner_idx ON tombstones (owner_id) WHERE owner_id IS NOT NULL;

-- Facts about the portal as a whole.

CREATE TABLE attempt_totals (
  outcome varchar(12) NOT NULL,
  error_code varchar(60) NOT NULL,
  duration_range smallint NOT NULL,
  attempts bigint NOT NULL,
  duration_s double precision NOT NULL,
  media_s double precision NOT NULL,
  PRIMARY KEY (outcome, error_code, duration_range)
);

CREATE TABLE library_words (
  id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  word text NOT NULL UNIQUE
);

CREATE TABLE signing_keys (
  kid varchar(20) PRIMARY KEY,
  secret bytea NOT NULL,
  created_at timestamptz NOT NULL
);

-- On a portal without accounts, `account_id` is the nil UUID.
CREATE TABLE idempotency_keys (
  account_id uuid NOT NULL,
  key varchar(255) NOT NULL,
  fingerprint bytea NOT NULL,
  began_at timestamptz NOT NULL DEFAULT now(),
  status smallint,
  headers jsonb,
  body bytea,
  PRIMARY KEY (account_id, key)
);

-- Events and webhooks. Events have no foreign keys: they outlive what they describe.

CREATE SEQUENCE event_numbers;

CREATE TABLE events (
  id bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME audit_events_id_seq) PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  action varchar(60) NOT NULL,
  actor_kind varchar(20) NOT NULL,
  actor_id uuid,
  actor_email varchar(254) NOT NULL,
  token_id uuid,
  token_name varchar(100) NOT NULL,
  address varchar(64) NOT NULL,
  object_id varchar(100),
  object_name varchar(254) NOT NULL,
  detail jsonb NOT NULL,
  type varchar(30),
  video_id uuid,
  number bigint CONSTRAINT audit_events_number_key UNIQUE,
  sequence bigint,
  data jsonb
);
CREATE INDEX events_action_idx ON events (action, id);
CREATE INDEX events_actor_idx ON events (actor_email, id);
CREATE INDEX events_at_idx ON events (at);
CREATE INDEX events_object_idx ON events (object_id, id);
CREATE INDEX events_object_name_idx ON events (object_name, id);
CREATE INDEX events_video_idx ON events (video_id, sequence) WHERE type IS NOT NULL;

CREATE TABLE webhooks (
  id uuid PRIMARY KEY,
  account_id uuid REFERENCES accounts (id) ON DELETE CASCADE,
  url text NOT NULL,
  events text[] NOT NULL,
  secret text NOT NULL,
  old_secret text,
  old_secret_until timestamptz,
  created_at timestamptz NOT NULL,
  failing_since timestamptz,
  disabled_reason text
);

CREATE TABLE webhook_deliveries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  webhook_id uuid NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  event_number bigint,
  type varchar(30) NOT NULL,
  lane smallint NOT NULL DEFAULT floor(random() * 4),
  created_at timestamptz NOT NULL DEFAULT now(),
  tries smallint NOT NULL DEFAULT 0,
  next_at timestamptz DEFAULT now(),
  sent_at timestamptz,
  duration_ms integer,
  status smallint,
  headers text NOT NULL DEFAULT '',
  answer text NOT NULL DEFAULT '',
  error text NOT NULL DEFAULT ''
);
CREATE INDEX webhook_deliveries_created_idx ON webhook_deliveries (created_at);
CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (webhook_id, lane, id)
  WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_webhook_idx ON webhook_deliveries (webhook_id, id);

-- Category ids are part of the public API: never renumber them.
INSERT INTO categories (id, name) VALUES
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
