"""Every bound of convmem, unit last, `_max` and `_min` inclusive; relations between bounds are asserted here.

The idea: at a bound we refuse or cut by rule, never grow. A number that bounds something and stands elsewhere is a
fault.
"""

KIB = 1024
MIB = 1024 * KIB

# Messages: all sizes are bytes of UTF-8.
CONTENT_BYTES_MAX = 1 * MIB
SESSION_ID_BYTES_MAX = 256
TOOL_CALL_ID_BYTES_MAX = 256
PROJECT_BYTES_MAX = 256
TAGS_MAX = 32
TAG_BYTES_MAX = 128
SUMMARY_BYTES_MAX = 4 * KIB
RELATIONS_MAX = 32
RELATION_TYPE_BYTES_MAX = 64
SOURCES_MAX = 64
IMPORTANCE_MAX = 100
IDEMPOTENCY_KEY_BYTES_MAX = 128
RECEIPTS_KEPT_MS = 7 * 24 * 3600 * 1000
METADATA_BYTES_MAX = (
    TOOL_CALL_ID_BYTES_MAX
    + PROJECT_BYTES_MAX
    + TAGS_MAX * TAG_BYTES_MAX
    + SUMMARY_BYTES_MAX
    + RELATIONS_MAX * (RELATION_TYPE_BYTES_MAX + 26)
    + SOURCES_MAX * 26
)
REVISION_MAX = 2**31 - 1
TIME_MS_MAX = 2**63 - 1

# What hooks capture: of a text so many code points are kept; a hook whose clock is ahead is believed so far; an event
# is known again until so long after its session's last one, and two hooks that see the same thing see it at once.
CAPTURE_EVENTS_MAX = 256
EVENT_ID_BYTES_MAX = 256
CAPTURE_TOOL_BYTES_MAX, CAPTURE_STATUS_BYTES_MAX, CAPTURE_DIRECTORY_BYTES_MAX = 256, 64, 1024
CAPTURE_FACTS_BYTES_MAX = (
    EVENT_ID_BYTES_MAX + CAPTURE_TOOL_BYTES_MAX + CAPTURE_STATUS_BYTES_MAX + CAPTURE_DIRECTORY_BYTES_MAX
)
CAPTURED_PROMPT_CODE_POINTS_MAX, CAPTURED_OTHER_CODE_POINTS_MAX = 4_000, 500
CAPTURE_AHEAD_MS_MAX = 5 * 60 * 1000
CAPTURE_TWIN_MS_MAX = 3_000
CAPTURE_KNOWN_MS = 90 * 24 * 3600 * 1000
SPOOLS_MAX = 256

# Memory: sizes are code points, as a person counts letters.
PREFERENCE_KEY_CODE_POINTS_MAX, PREFERENCE_VALUE_CODE_POINTS_MAX = 200, 2_000
LESSON_TEXT_CODE_POINTS_MAX = 1_000
SECTION_CODE_POINTS_MAX = 4_000
PROFILE_SECTIONS_MAX = 32
TOPIC_CODE_POINTS_MAX = 500
RECALL_LIMIT_DEFAULT, RECALL_LIMIT_MAX = 8, 50
HISTORY_HITS_DEFAULT, HISTORY_HITS_MAX = 10, 50
INTERACTIONS_LIMIT_DEFAULT, INTERACTIONS_LIMIT_MAX = 20, 100
FORGOTTEN_PREVIEW_CODE_POINTS = 200
EXPORT_NAME_CODE_POINTS_MAX = 128

# Reading.
QUERY_BYTES_MAX = 1024
HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX = 50, 500
CONTENT_SLICE_BYTES_DEFAULT, CONTENT_SLICE_BYTES_MAX = 4 * KIB, 64 * KIB
CONTEXT_NEIGHBOURS_DEFAULT, CONTEXT_NEIGHBOURS_MAX = 3, 50
RELATION_DEPTH_DEFAULT, RELATION_DEPTH_MAX = 1, 2
SESSIONS_LIMIT_DEFAULT, SESSIONS_LIMIT_MAX = 50, 500
EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX = 50, 500
SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX = 10, 100
SEARCH_CONTEXT_MAX = 10
SNIPPET_CODE_POINTS_MAX = 300
SESSION_SUMMARY_CODE_POINTS_MAX = 200
LIST_ENTRIES_MAX = 200
PREVIEW_FROM_BYTES = 4 * KIB
PREVIEW_BYTES = 1 * KIB
# A serialised result carries its facts twice (text and structuredContent), the text escaped once more.
REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX = 64 * KIB, 8 * MIB
REPLY_ENVELOPE_BYTES = 2 * KIB
CURSOR_BYTES_MAX = 1 * KIB
RELATION_PREVIEW_CODE_POINTS = 200

# What a model is shown of memory: pages of so many code points, so much of one text; and the facts beside a page.
RECALL_CODE_POINTS_MAX, RECALL_HISTORY_MAX = 2_000, 20
PROFILE_CODE_POINTS_MAX, PROFILE_PREFERENCES_MAX, PROFILE_LESSONS_MAX = 3_000, 15, 5
STATISTICS_CODE_POINTS_MAX = 1_500
INTERACTIONS_CODE_POINTS_MAX, INTERACTION_CODE_POINTS_MAX = 4_000, 300
HISTORY_CODE_POINTS_MAX, HISTORY_SNIPPET_CODE_POINTS_MAX = 12_000, 200
EXPORT_PREVIEW_CODE_POINTS_MAX = 500
MEMORY_FACTS_BYTES_MAX = 44 * KIB
# Of the preferences, and of the lessons, that may hold a topic, the most promising are scored; so many terms choose
# them, and all of its terms if these find too few.
RECALL_SCORED_MAX, RECALL_ROOTS_FIRST = 64, 16

# Searching by scan: a slice is one visit to a reader, so that a long search does not keep others waiting.
SEARCH_EXACT_NEWEST = 50
SEARCH_SLICE_ROWS = 4_096
SEARCH_SLICE_BYTES = 8 * MIB
SEARCH_SCAN_BYTES_MAX = 1024 * MIB
SEARCH_CANDIDATES_MAX = 200
SEARCH_PARTS_MAX = 16
MATCH_RANGES_MAX = 32
MATCH_PLACES_MAX = 4_096

# The tables of search follow the index: so many messages a transaction, between which the writer goes first unless
# they are far behind; a search looks through what they do not know yet, or does without them where that is more.
INDEXER_DOCUMENTS = 64
INDEXER_GATHER_MS = 200
INDEXER_HURRY_CHANGES = 2_000
INDEXER_RETRY_MS = 5_000
SEARCH_TAIL_CHANGES_MAX = 20_000
SEARCH_TAIL_WHOLE_ROWS = 500

# Searching by relevance: so many terms of a query count; the rarest of them together stand in so many messages, of
# which the best are looked at, and the newest of those that hold (nearly) all terms; so much text is read to count.
SEARCH_RANKED_TERMS_MAX = 64
SEARCH_POSTINGS_MAX = 20_000
SEARCH_FREQUENCY_COUNTED_MAX = 1_000
SEARCH_BEST_ROWS, SEARCH_BEST_ROWS_WITH_NEIGHBOURS = 50, 20
SEARCH_NEARLY_ALL_ROWS = 40
SEARCH_RANKED_CODE_POINTS_MAX = 4_000_000

# Searching by the tables: one or two letters are first looked for in the newest messages; a session or a tag of few
# messages is looked through; of so many terms of a query the rarest are asked for (how rare each is, the newest tell),
# and so many grams that begin with its letters.
SEARCH_NEWEST_ROWS, SEARCH_NEWEST_ROWS_A_HIT = 1_500, 100
SEARCH_FEW_ROWS = 3_000
SEARCH_TERMS_MAX = 16
SEARCH_TELLING_TERMS, SEARCH_DENSITY_ROWS = 4, 64
SEARCH_BEGUN_GRAMS_MAX = 256

# Files of records (JSON Lines).
LINE_BYTES_MAX = 8 * MIB
IMPORT_RECORDS_MAX = 1_000_000
IMPORT_BYTES_MAX = 4 * 1024 * MIB
EXPORT_PIECE_BYTES = 512 * KIB
EXPORT_PREVIEW_CODE_POINTS_MAX = 500

# Backups.
MANIFEST_BYTES_MAX = 1 * MIB
BACKUP_EVERY_S_MAX = 366 * 24 * 3600
# The doctor: how long each of its steps may take, how much of an answer it reads, what it warns of (the end of a
# certificate, clocks that differ, slow answers, a large list of tools), how often it measures, and what it sends.
DOCTOR_STEP_MS_MAX, DOCTOR_ANSWER_BYTES_MAX = 5_000, 1 * MIB
DOCTOR_CERTIFICATE_DAYS_MIN, DOCTOR_CLOCK_MS_MAX, DOCTOR_LATENCY_MS_MAX = 14, 60_000, 1_000
DOCTOR_TOOLS_BYTES_MAX, DOCTOR_PINGS = 20 * KIB, 5
DOCTOR_BODY_BYTES, DOCTOR_SPACE_BYTES_MIN = CONTENT_BYTES_MAX + 256 * KIB, 64 * MIB
# Device tokens.
TOKEN_NAME_BYTES_MAX, TOKENS_MAX, TOKENS_BYTES_MAX = 64, 1_000, 1 * MIB

# Distill: what a profile section says of what was captured, so many entries of so many code points; how many different
# words, pairs of words and names are counted at once; how many messages are read at a time, and pruned by one command.
KEYWORDS_MAX, KEYWORD_CODE_POINTS_MAX, KEYWORD_WORDS_MAX = 40, 40, 4
KEYWORDS_COUNTED_MAX = 100_000
USAGE_ENTRIES_MAX, USAGE_ENTRY_CODE_POINTS_MAX = 10, 80
NAMES_COUNTED_MAX, DISTINCT_COUNTED_MAX = 10_000, 200_000
DISTILL_SLICE_MESSAGES = 250
PRUNE_MESSAGES_MAX = 256
RETENTION_DAYS_DEFAULT, RETENTION_DAYS_MAX = 30, 36_500

# Tables: what a schema.yaml and a row may hold. A schema of the most fields has a tenth of the values, and a parser in
# Python reads them all in two seconds.
SCHEMA_BYTES_MAX, SCHEMA_NODES_MAX = 1 * MIB, 32_768
FIELDS_MAX, FIELD_NAME_BYTES_MAX = 256, 128
ROW_FIELDS_MAX, ROW_DATA_BYTES_MAX = 256, 1 * MIB
# How much of a row a change echoes, how many rows that begin alike are named, how long a receipt of `create` is kept.
ROW_ECHO_BYTES_MAX, ID_CANDIDATES_MAX = 16 * KIB, 20
ROW_RECEIPTS_S_MAX = 30 * 24 * 3600
# A statement of a caller's: how large it may be; how long those of a batch, and the whole batch, may take.
STATEMENT_BYTES_MAX, STATEMENT_MS_MAX, BATCH_MS_MAX = 64 * KIB, 250, 2_000
# Rows that are held against a new schema at a time, and what a batch may do at once.
ROWS_CHECKED_AT_ONCE, BATCH_OPS_MAX, BATCH_ROWS_MAX = 10_000, 1_000, 10_000

# Tables: texts edited by line. Templates of filters: how large, how long one expression, how many steps, and how much
# may go in and come out. History: entries kept as they are, entries a chunk, and how large a chunk may be unpacked: one
# that we write, one that we read.
EDIT_TEXT_BYTES_MAX, EDIT_CANDIDATES_MAX = 1 * MIB, 20
TEMPLATE_BYTES_MAX, TEMPLATE_EXPRESSION_CODE_POINTS_MAX, TEMPLATE_STEPS_MAX = 16 * KIB, 256, 50_000
TEMPLATE_PARAMS_BYTES_MAX, TEMPLATE_RESULT_BYTES_MAX = 64 * KIB, 256 * KIB
HISTORY_KEEP_RECENT_DEFAULT, HISTORY_CHUNK_MIN_DEFAULT = 16, 48
HISTORY_CHUNK_BYTES, HISTORY_CHUNK_BYTES_MAX = 32 * MIB, 256 * MIB

# JSON that comes in.
JSON_LEVELS_MAX = 64
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

# Transport. Text may be escaped as \u0001: six bytes for one.
BODY_BYTES_MAX = 6 * CONTENT_BYTES_MAX + 256 * KIB
# Bodies that are still coming in, of all callers together, and how long one may be silent.
BODIES_BYTES_MAX, BODY_SILENCE_S_MAX = 64 * MIB, 30
HEADERS_BYTES_MAX = 32 * KIB
CLIENT_BYTES_MAX, DEVICE_BYTES_MAX, TRANSPORT_BYTES_MAX = 128, 128, 32
SOCKET_PATH_BYTES_MAX = 100
STOP_MS_MAX, OPENING_WAIT_MS_MAX = 5_000, 1_000
TOKEN_BYTES_MAX = 4 * KIB
FIELD_CODE_POINTS_MAX, SEEN_CODE_POINTS_MAX = 128, 256
KEEP_ALIVE_S, STOP_GRACE_S = 75, 3
# Lines of progress of a long operation: not closer together than this, and never further apart.
PROGRESS_INTERVAL_MS_MIN, PROGRESS_SILENCE_S_MAX = 100, 10
# What a service manager is told: how long a look at the store that opens may take and how much longer it shall wait
# meanwhile, and how rarely the daemon looks whether it works.
NOTIFY_OPENING_MS, NOTIFY_EXTENSION_MS, NOTIFY_INTERVAL_MS_MAX = 5_000, 30_000, 30_000
STDIO_REQUESTS_MAX = 64
# The bridge from stdio to a daemon: how long it waits for a connection, how large an answer may be, how long a
# connection that was quiet is still used (for what must not be sent twice: how long it is trusted), how long a request
# waits for a daemon that is away, and in which steps it asks for it.
BRIDGE_CONNECT_MS_MAX, BRIDGE_ANSWER_BYTES_MAX = 10_000, 16 * MIB
BRIDGE_QUIET_MS_MAX, BRIDGE_TRUST_MS_MAX = 20_000, 2_000
BRIDGE_PATIENCE_MS, BRIDGE_PAUSE_MS_MIN, BRIDGE_PAUSE_MS_MAX = 30_000, 50, 1_000
# A store that a daemon held is left to the daemon's next start for so long, before a bridge takes it over; one that
# another agent program's process held, to a daemon that may have asked for it.
TAKE_OVER_AFTER_MS, TAKE_OVER_SOON_MS, VACANCY_PAUSE_MS = 3_000, 300, 100
# How long a daemon that starts waits for a store that such a process has agreed to give, and for a nameless holder.
HAND_OVER_MS_MAX, HAND_OVER_PAUSE_MS, NAMELESS_HOLDER_MS_MAX = 10_000, 20, 500
LOCK_TEXT_BYTES_MAX, SETTINGS_FILE_BYTES_MAX = 4 * KIB, 64 * KIB
# Configurations of other programs: how large, how deep; how often a change begins again because another program was
# quicker, and how many copies one second may have.
CONFIG_BYTES_MAX, CONFIG_LEVELS_MAX = 32 * MIB, 200
CONFIG_ATTEMPTS_MAX, CONFIG_COPIES_A_SECOND_MAX = 3, 100

# The client for hooks. What a host hands over, and how long it may be silent; how long it is held up for an answer, for
# its turn at the spool, and where that does not come for the place beside it, which holds so much.
HOOK_INPUT_BYTES_MAX, HOOK_INPUT_SILENCE_MS_MAX = BODY_BYTES_MAX, 2_000
HOOK_ANSWER_MS_MAX, HOOK_TURN_MS_MAX, HOOK_LATE_MS_MAX = 8, 15, 5
SPOOL_LATE_BYTES_MAX = 1 * MIB
# Where the start of a text is all that is kept, so much is looked through for secrets at first, more if too little of
# that is left over behind what is kept.
REDACTED_FIRST_CODE_POINTS = 10 * KIB
REDACTED_AHEAD_CODE_POINTS, REDACTED_BEYOND_CODE_POINTS = 64 * KIB, 8 * KIB
# What waits on disk: so much for so long. Where there is no room more goes than must, so that not each event makes it.
SPOOL_BYTES_MAX, SPOOL_ROOM_BYTES = 16 * MIB, 1 * MIB
SPOOL_AGE_MS_MAX = 30 * 24 * 3600 * 1000
SPOOL_LINE_BYTES_MAX, SPOOL_TAKEN_BYTES_MAX = 64 * KIB, 4 * MIB
# Delivering what waits: a request's size, how long for its answer and for a turn at the spool, pauses that grow, and
# when to leave it to another.
DELIVERY_BYTES_MAX = 1 * MIB
DELIVERY_TURN_MS_MAX, DELIVERY_LATE_MS_MAX = 10_000, 1_000
DELIVERY_ANSWER_MS_MAX, DELIVERY_ANSWER_BYTES_MAX = 30_000, 1 * MIB
DELIVERY_PAUSE_MS_MIN, DELIVERY_PAUSE_MS_MAX, DELIVERY_RETRY_AFTER_MS_MAX = 250, 15_000, 60_000
DELIVERY_PATIENCE_MS, DELIVERY_PATIENCE_IN_FRONT_MS = 10 * 60 * 1000, 10_000

# Store.
MAILBOX_COMMANDS_MAX, MAILBOX_BYTES_MAX = 1_024, 64 * MIB
BATCH_COMMANDS_MAX, BATCH_BYTES_MAX, FRAME_BYTES_MAX = 256, 8 * MIB, 32 * MIB
# Live records share a frame of their generation's state until it has this size.
STATE_FRAME_BYTES = 1 * MIB
# Pages of the index's WAL that make a checkpoint due: when nobody waits, and at the latest.
CHECKPOINT_PAGES_IDLE, CHECKPOINT_PAGES_BUSY = 256, 8_192
BUSY_RETRY_MS, REBUILD_RETRY_MS, STORAGE_FULL_RETRY_MS = 100, 1_000, 5_000
READERS = 2
# Files of tables: how many are open to be written, and to be read; how long another program's lock on one is waited
# for; pages in a WAL that are moved into the file between two batches, and how long nobody writes until any are.
TABLE_FILES_OPEN_MAX, TABLE_WAIT_MS = 32, 50
TABLE_WAL_PAGES_MAX, TABLE_REST_MS = 1_000, 1_000
# Copies of table files: pages a step, and how often a copy may have to begin anew before it is made in one step.
COPY_PAGES_AT_ONCE, COPY_STARTS_MAX = 1_000, 3
# How often a check begins again because another generation took over meanwhile.
CHECK_ATTEMPTS_MAX = 5
# How often a salvage copies an index that changes meanwhile, and how much of a kind its report lists.
SALVAGE_COPIES_MAX, SALVAGE_LISTED_MAX = 5, 1_000

# Tables, asking: how large a filter may be, how many fields order rows and how much of a text counts in that, how much
# an aggregate takes together, and how many groups are shown.
FILTER_LEVELS_MAX, FILTER_NODES_MAX, FILTER_VALUES_MAX = 8, 128, 1_000
LIKE_PATTERN_BYTES_MAX = 256
ORDER_FIELDS_MAX, ORDER_TEXT_BYTES = 8, 256
ROWS_CURSOR_BYTES_MAX = 4 * KIB
ROWS_LIMIT_DEFAULT, ROWS_LIMIT_MAX, ROWS_OFFSET_MAX = 100, 1_000, 1_000_000_000
HISTORY_PAGE_DEFAULT = 50
# No version of a row, no line and no second that anybody means is beyond this: what JSON numbers hold exactly.
VERSION_MAX = 2**53 - 1
ALIAS_NAME_BYTES_MAX, ALIASES_SHOWN_MAX, TABLES_SHOWN_MAX = 128, 200, 100
# A transaction that purges versions: rows, entries, bytes of text; and how often it is tried while the file is locked.
PURGE_ROWS_AT_ONCE, PURGE_ENTRIES_AT_ONCE, PURGE_BYTES_AT_ONCE, PURGE_TRIES_MAX = 200, 1_000, 8 * MIB, 20
# What a person may set: copies kept of a table, versions of a row kept as they are or packed together.
COPIES_KEPT_MAX, HISTORY_KEPT_MAX = 10_000, 100_000
# One file to another host: how much one request holds there (S3: 5 GiB), how long it may take, how often it is tried.
UPLOAD_BYTES_MAX, UPLOAD_S_MAX, UPLOAD_RETRIES_MAX = 5 * 1024 * MIB, 60, 2
# Resources: how many a page of their list holds, and how long a URI may be.
RESOURCES_A_PAGE, URI_CODE_POINTS_MAX = 200, 1_024
# How long a question to tables may take, and how many are answered at once.
QUERY_MS_MAX, TABLE_READERS = 5_000, 4
AGGREGATE_SOURCES_MAX, TABLE_PATTERN_CODE_POINTS_MAX = 10, 128
GROUPS_LIMIT_DEFAULT, GROUPS_LIMIT_MAX = 200, 1_000

# Imports of other programs' files: what a report names of what was skipped, how much of a source tells what it is, how
# large one conversation or line may be, how large a source may be unpacked, how many files a directory may have.
IMPORT_SKIPPED_SHOWN_MAX, IMPORT_SAMPLE_BYTES = 1_000, 256 * KIB
SOURCE_NAME_BYTES_MAX, IMPORT_BATCH_RECORDS, IMPORT_BATCH_BYTES = 512, 512, 2 * MIB
IMPORT_ELEMENT_BYTES_MAX, IMPORT_UNPACKED_BYTES_MAX, IMPORT_SOURCES_MAX = 128 * MIB, 64 * 1024 * MIB, 1_000_000
