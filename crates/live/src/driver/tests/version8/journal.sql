BEGIN TRANSACTION;
PRAGMA user_version = 4;
CREATE TABLE audit(
    id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, user TEXT NOT NULL, what TEXT NOT NULL,
    target TEXT NOT NULL, outcome TEXT NOT NULL);
CREATE TABLE certificates(
    fingerprint TEXT PRIMARY KEY, node TEXT NOT NULL, issued_us INTEGER NOT NULL, by TEXT NOT NULL,
    revoked_us INTEGER, released_us INTEGER);
CREATE TABLE estimates(only INTEGER PRIMARY KEY CHECK(only = 0), record BLOB NOT NULL);
CREATE TABLE events(
    id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, event TEXT NOT NULL, job INTEGER, node TEXT, user TEXT,
    detail TEXT NOT NULL);
CREATE TABLE jobs(
    id INTEGER PRIMARY KEY, user TEXT NOT NULL, key TEXT, request TEXT NOT NULL, submitted_us INTEGER NOT NULL,
    facts TEXT, state TEXT, summary TEXT, ended_us INTEGER);
INSERT INTO "jobs" VALUES(0,'ann','647ecd9c38e0c7dd89e2a9d33eb52a3a','{"name":null,"command":["sleep","300"],"env":{},"workdir":"/home/ann","gpus":1,"min_gpus":null,"max_gpus":null,"kinds":["h100"],"nodes":null,"ranks":"node","tenant":null,"weight":null,"priority":0,"deadline":null,"late":null,"begin":null,"after":[],"time_limit_s":3600.0,"duration_s":null,"model":null,"batch_size":null,"training":null,"max_restarts":null,"pause":"auto","checkpoint":{"dir":null,"signal":null,"grace_s":null},"output":null,"error":null,"memory_mib":null,"cpus":null,"exclusive":false,"gpu_fraction":null,"gpu_limit":null,"gpu_memory_mib":null,"class":"ordinary","max_slowdown":null,"affinity":null,"anti_affinity":null,"exclusion":null}',1795066601834860,'{"exit_code":null,"signal":null,"message":null,"total":null,"checkpointed":null,"save":0,"talks":false,"cancelled":null,"ran":[{"node":"n1","first":0,"count":1}]}',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(1,'ann','b7fff0d58d3bec10ceea5ff7909fa666','{"name":null,"command":["sleep","300"],"env":{},"workdir":"/home/ann","gpus":1,"min_gpus":null,"max_gpus":null,"kinds":["h100"],"nodes":null,"ranks":"node","tenant":null,"weight":null,"priority":0,"deadline":null,"late":null,"begin":null,"after":[],"time_limit_s":3600.0,"duration_s":null,"model":null,"batch_size":null,"training":null,"max_restarts":null,"pause":"auto","checkpoint":{"dir":null,"signal":null,"grace_s":null},"output":null,"error":null,"memory_mib":null,"cpus":null,"exclusive":false,"gpu_fraction":null,"gpu_limit":null,"gpu_memory_mib":null,"class":"ordinary","max_slowdown":null,"affinity":null,"anti_affinity":null,"exclusion":null}',1795066601845819,'{"exit_code":null,"signal":null,"message":null,"total":null,"checkpointed":null,"save":0,"talks":false,"cancelled":null,"ran":[{"node":"n1","first":0,"count":1}]}',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(2,'ann','571f08a698604348746ea2d571776781','{"name":null,"command":["sleep","60"],"env":{},"workdir":"/home/ann","gpus":2,"min_gpus":null,"max_gpus":null,"kinds":["v100"],"nodes":null,"ranks":"node","tenant":null,"weight":null,"priority":0,"deadline":1795070201.854921,"late":null,"begin":null,"after":[],"time_limit_s":60.0,"duration_s":null,"model":null,"batch_size":null,"training":null,"max_restarts":null,"pause":"auto","checkpoint":{"dir":null,"signal":null,"grace_s":null},"output":null,"error":null,"memory_mib":null,"cpus":null,"exclusive":false,"gpu_fraction":null,"gpu_limit":null,"gpu_memory_mib":null,"class":"ordinary","max_slowdown":null,"affinity":null,"anti_affinity":null,"exclusion":null}',1795066601857747,'{"exit_code":null,"signal":null,"message":null,"total":null,"checkpointed":null,"save":0,"talks":false,"cancelled":null,"ran":[{"node":"n1","first":0,"count":1}]}',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(3,'ann','541cb0f442d348f874b2991f7e555cf1','{"name":null,"command":["sleep","20"],"env":{},"workdir":"/home/ann","gpus":1,"min_gpus":null,"max_gpus":null,"kinds":["h100"],"nodes":null,"ranks":"node","tenant":null,"weight":null,"priority":0,"deadline":1795073801.866827,"late":null,"begin":null,"after":[],"time_limit_s":60.0,"duration_s":null,"model":null,"batch_size":null,"training":null,"max_restarts":null,"pause":"auto","checkpoint":{"dir":null,"signal":null,"grace_s":null},"output":null,"error":null,"memory_mib":null,"cpus":null,"exclusive":false,"gpu_fraction":null,"gpu_limit":null,"gpu_memory_mib":null,"class":"ordinary","max_slowdown":null,"affinity":null,"anti_affinity":null,"exclusion":null}',1795066601869045,'{"exit_code":null,"signal":null,"message":null,"total":null,"checkpointed":null,"save":0,"talks":false,"cancelled":null,"ran":[{"node":"n1","first":0,"count":1}]}',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,'ann','e8ef4ce76933429886eb0b8026ea8299','{"name":null,"command":["sleep","5"],"env":{},"workdir":"/home/ann","gpus":2,"min_gpus":null,"max_gpus":null,"kinds":["h100"],"nodes":null,"ranks":"node","tenant":null,"weight":null,"priority":0,"deadline":1795077415.998351,"late":null,"begin":null,"after":[],"time_limit_s":60.0,"duration_s":null,"model":null,"batch_size":null,"training":null,"max_restarts":null,"pause":"auto","checkpoint":{"dir":null,"signal":null,"grace_s":null},"output":null,"error":null,"memory_mib":null,"cpus":null,"exclusive":false,"gpu_fraction":null,"gpu_limit":null,"gpu_memory_mib":null,"class":"ordinary","max_slowdown":null,"affinity":null,"anti_affinity":null,"exclusion":null}',1795066616000883,NULL,NULL,NULL,NULL);
CREATE TABLE journal(
    seq INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, version INTEGER NOT NULL, input TEXT NOT NULL);
INSERT INTO "journal" VALUES(1,1795066597871465,8,'{"Begin":{"round":5000000,"every_round":true,"repack":false,"fill":true,"turns":"Owed","plan_gap":0,"lease":18446744073709551615,"backoff":10000000,"promises":true,"apart":false,"learns_lengths":true}}');
INSERT INTO "journal" VALUES(2,1795066597871465,8,'{"Believe":{"beside":[],"learned":{"guessed":[],"measured":[],"pairs":[],"usage":{}}}}');
INSERT INTO "journal" VALUES(3,1795066597871465,8,'"Tick"');
INSERT INTO "journal" VALUES(4,1795066597900875,8,'{"Kind":"h100"}');
INSERT INTO "journal" VALUES(5,1795066597900875,8,'{"Node":{"Join":{"name":"n1/h100","kind":0,"devices":2,"rack":0,"memory_mib":81920}}}');
INSERT INTO "journal" VALUES(6,1795066597900875,8,'{"Kind":"v100"}');
INSERT INTO "journal" VALUES(7,1795066597900875,8,'{"Node":{"Join":{"name":"n1/v100","kind":1,"devices":4,"rack":0,"memory_mib":81920}}}');
INSERT INTO "journal" VALUES(8,1795066597900875,8,'{"Believe":{"beside":[],"learned":{"guessed":[],"measured":[],"pairs":[],"usage":{}}}}');
INSERT INTO "journal" VALUES(9,1795066597900875,8,'{"Node":{"Health":{"node":0,"bad":0}}}');
INSERT INTO "journal" VALUES(10,1795066597900875,8,'{"Node":{"Health":{"node":1,"bad":0}}}');
INSERT INTO "journal" VALUES(11,1795066597900875,8,'"Tick"');
INSERT INTO "journal" VALUES(12,1795066600000000,8,'"Tick"');
INSERT INTO "journal" VALUES(13,1795066600001265,8,'"Tick"');
INSERT INTO "journal" VALUES(14,1795066600002782,8,'{"Planned":{"plan":1,"answer":{"Ok":{"mode":{"Ordered":{"preempt":true,"skip":true,"classes":false}},"shares":{"All":[]},"replan_at":null,"certificate":{"objective":0.0,"bound":0.0,"prices":[0.0,0.0],"unmet":[]}}}}}');
INSERT INTO "journal" VALUES(15,1795066600002782,8,'"Tick"');
INSERT INTO "journal" VALUES(16,1795066601834860,8,'{"Submit":{"name":"sleep","user":"ann","tenant":null,"weight":1.0,"priority":0,"deadline":null,"steps":3600.0,"length":"stated","shapes":[{"needs":[{"kind":0,"devices":1}],"spread":"Any","batch_size":null}],"speeds":[1.0],"profile":3951685780,"costs":{"save":0,"load":0,"start":0},"failures_max":0,"pausable":true,"not_before":null,"sharing":null,"training":null,"regimes":null,"rewards":null,"late":"try","after":[]}}');
INSERT INTO "journal" VALUES(17,1795066601834860,8,'"Tick"');
INSERT INTO "journal" VALUES(18,1795066601845819,8,'{"Submit":{"name":"sleep","user":"ann","tenant":null,"weight":1.0,"priority":0,"deadline":null,"steps":3600.0,"length":"stated","shapes":[{"needs":[{"kind":0,"devices":1}],"spread":"Any","batch_size":null}],"speeds":[1.0],"profile":3951685780,"costs":{"save":0,"load":0,"start":0},"failures_max":0,"pausable":true,"not_before":null,"sharing":null,"training":null,"regimes":null,"rewards":null,"late":"try","after":[]}}');
INSERT INTO "journal" VALUES(19,1795066601845819,8,'"Tick"');
INSERT INTO "journal" VALUES(20,1795066601856394,8,'{"Report":{"lease":0,"job":0,"news":"Started"}}');
INSERT INTO "journal" VALUES(21,1795066601856394,8,'"Tick"');
INSERT INTO "journal" VALUES(22,1795066601857747,8,'{"Submit":{"name":"sleep","user":"ann","tenant":null,"weight":1.0,"priority":0,"deadline":1795070201854921,"steps":60.0,"length":"stated","shapes":[{"needs":[{"kind":1,"devices":2}],"spread":"Any","batch_size":null}],"speeds":[1.0],"profile":4049181784,"costs":{"save":0,"load":0,"start":0},"failures_max":0,"pausable":true,"not_before":null,"sharing":null,"training":null,"regimes":null,"rewards":null,"late":"try","after":[]}}');
INSERT INTO "journal" VALUES(23,1795066601857747,8,'"Tick"');
INSERT INTO "journal" VALUES(24,1795066601864980,8,'{"Report":{"lease":1,"job":1,"news":"Started"}}');
INSERT INTO "journal" VALUES(25,1795066601864980,8,'"Tick"');
INSERT INTO "journal" VALUES(26,1795066601869045,8,'{"Submit":{"name":"sleep","user":"ann","tenant":null,"weight":1.0,"priority":0,"deadline":1795073801866827,"steps":60.0,"length":"stated","shapes":[{"needs":[{"kind":0,"devices":1}],"spread":"Any","batch_size":null}],"speeds":[1.0],"profile":2567574687,"costs":{"save":0,"load":0,"start":0},"failures_max":0,"pausable":true,"not_before":null,"sharing":null,"training":null,"regimes":null,"rewards":null,"late":"try","after":[]}}');
INSERT INTO "journal" VALUES(27,1795066601869045,8,'"Tick"');
INSERT INTO "journal" VALUES(28,1795066601874777,8,'{"Report":{"lease":2,"job":2,"news":"Started"}}');
INSERT INTO "journal" VALUES(29,1795066601874777,8,'"Tick"');
INSERT INTO "journal" VALUES(30,1795066605000000,8,'"Tick"');
INSERT INTO "journal" VALUES(31,1795066605001199,8,'"Tick"');
INSERT INTO "journal" VALUES(32,1795066605002460,8,'{"Planned":{"plan":2,"answer":{"Ok":{"mode":{"Ordered":{"preempt":true,"skip":true,"classes":false}},"shares":{"All":[{"jobs":[0],"shape":null,"fraction":1.0,"rank":[-1.0,1795066601.83486]},{"jobs":[2],"shape":null,"fraction":1.0,"rank":[-2.0,1795066601.857747]},{"jobs":[3],"shape":null,"fraction":1.0,"rank":[-1.0,1795066601.869045]},{"jobs":[1],"shape":null,"fraction":1.0,"rank":[1.0,1795066601.845819]}]},"replan_at":null,"certificate":{"objective":2.941105014038815,"bound":2.941105014038815,"prices":[0.5,0.0],"unmet":[]}}}}}');
INSERT INTO "journal" VALUES(33,1795066605002460,8,'"Tick"');
INSERT INTO "journal" VALUES(34,1795066605003770,8,'{"Report":{"lease":1,"job":1,"news":{"Stopped":{"steps":3.13748,"outcome":"Frozen"}}}}');
INSERT INTO "journal" VALUES(35,1795066605003770,8,'"Tick"');
INSERT INTO "journal" VALUES(36,1795066605019512,8,'{"Report":{"lease":3,"job":3,"news":"Started"}}');
INSERT INTO "journal" VALUES(37,1795066605019512,8,'"Tick"');
INSERT INTO "journal" VALUES(38,1795066610000000,8,'"Tick"');
INSERT INTO "journal" VALUES(39,1795066610002016,8,'"Tick"');
INSERT INTO "journal" VALUES(40,1795066610003280,8,'{"Planned":{"plan":3,"answer":{"Ok":{"mode":{"Ordered":{"preempt":true,"skip":true,"classes":false}},"shares":{"All":[{"jobs":[0],"shape":null,"fraction":1.0,"rank":[-1.0,1795066601.83486]},{"jobs":[2],"shape":null,"fraction":1.0,"rank":[-2.0,1795066601.857747]},{"jobs":[3],"shape":null,"fraction":1.0,"rank":[-1.0,1795066601.869045]},{"jobs":[1],"shape":null,"fraction":1.0,"rank":[1.0,1795066601.845819]}]},"replan_at":null,"certificate":{"objective":2.9436928042441215,"bound":2.9436928042441215,"prices":[0.5,0.0],"unmet":[]}}}}}');
INSERT INTO "journal" VALUES(41,1795066610003280,8,'"Tick"');
INSERT INTO "journal" VALUES(42,1795066615000000,8,'"Tick"');
INSERT INTO "journal" VALUES(43,1795066615001499,8,'"Tick"');
INSERT INTO "journal" VALUES(44,1795066615002787,8,'{"Planned":{"plan":4,"answer":{"Ok":{"mode":{"Ordered":{"preempt":true,"skip":true,"classes":false}},"shares":{"All":[{"jobs":[0],"shape":null,"fraction":1.0,"rank":[-1.0,1795066601.83486]},{"jobs":[2],"shape":null,"fraction":1.0,"rank":[-2.0,1795066601.857747]},{"jobs":[3],"shape":null,"fraction":1.0,"rank":[-1.0,1795066601.869045]},{"jobs":[1],"shape":null,"fraction":1.0,"rank":[1.0,1795066601.845819]}]},"replan_at":null,"certificate":{"objective":2.9467682426055863,"bound":2.9467682426055863,"prices":[0.5,0.0],"unmet":[]}}}}}');
INSERT INTO "journal" VALUES(45,1795066615002787,8,'"Tick"');
INSERT INTO "journal" VALUES(46,1795066616000883,8,'{"Submit":{"name":"sleep","user":"ann","tenant":null,"weight":1.0,"priority":0,"deadline":1795077415998351,"steps":60.0,"length":"stated","shapes":[{"needs":[{"kind":0,"devices":2}],"spread":"Any","batch_size":null}],"speeds":[1.0],"profile":3985736269,"costs":{"save":0,"load":0,"start":0},"failures_max":0,"pausable":true,"not_before":null,"sharing":null,"training":null,"regimes":null,"rewards":null,"late":"try","after":[]}}');
INSERT INTO "journal" VALUES(47,1795066616000883,8,'"Tick"');
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('derived',47);
CREATE TABLE nodes(
    name TEXT PRIMARY KEY, address TEXT NOT NULL, groups TEXT NOT NULL, drain_reason TEXT, drain_user TEXT, audience TEXT)
    WITHOUT ROWID;
INSERT INTO "nodes" VALUES('n1','127.0.0.1','[{"kind":"h100","devices":[{"name":"pretend h100","uuid":null,"memory_mib":81920,"problem":null,"split":false,"links":[]},{"name":"pretend h100","uuid":null,"memory_mib":81920,"problem":null,"split":false,"links":[]}]},{"kind":"v100","devices":[{"name":"pretend v100","uuid":null,"memory_mib":81920,"problem":null,"split":false,"links":[]},{"name":"pretend v100","uuid":null,"memory_mib":81920,"problem":null,"split":false,"links":[]},{"name":"pretend v100","uuid":null,"memory_mib":81920,"problem":null,"split":false,"links":[]},{"name":"pretend v100","uuid":null,"memory_mib":81920,"problem":null,"split":false,"links":[]}]}]',NULL,NULL,'"everybody"');
CREATE TABLE secrets(
    user TEXT NOT NULL, name TEXT NOT NULL, nonce BLOB NOT NULL, sealed BLOB NOT NULL, bytes INTEGER NOT NULL,
    set_us INTEGER NOT NULL, PRIMARY KEY(user, name)) WITHOUT ROWID;
CREATE TABLE set_aside(
    seq INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, aside_us INTEGER NOT NULL, input TEXT NOT NULL,
    reason TEXT NOT NULL);
CREATE TABLE snapshots(seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, state BLOB NOT NULL);
CREATE TABLE tokens(
    id TEXT PRIMARY KEY, user TEXT NOT NULL, scope TEXT NOT NULL, hash BLOB NOT NULL, created_us INTEGER NOT NULL,
    expires_us INTEGER, revoked INTEGER NOT NULL, used_us INTEGER, limits TEXT, nodes TEXT, uses_left INTEGER)
    WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_key ON jobs(user, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_open ON jobs(id) WHERE ended_us IS NULL;
CREATE INDEX jobs_user ON jobs(user, id);
CREATE INDEX events_job ON events(job, id) WHERE job IS NOT NULL;
CREATE INDEX certificates_node ON certificates(node);
COMMIT;
