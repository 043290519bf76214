/** Every command of bramble-controller with its options: read, checked, explained and completed from these rows. */
import type { Command } from '../../daemon/process/command.ts'

export const defaultDataDir = '/var/lib/bramble/controller'

const dataDir = {
  value: 'DIR',
  help: 'data directory of the controller: authority, store and kubeconfig',
  default: defaultDataDir,
} as const
const kubeconfig = {
  value: 'FILE',
  help: 'kubeconfig of an administrator',
  defaultText: 'DIR/kubeconfig',
} as const

const passphraseFile = {
  value: 'FILE',
  help: 'file with the passphrase of the backup in its first line; - for the standard input',
} as const

const port = [0, 65_535] as const

const etcd = {
  'etcd-servers': {
    value: 'URLS',
    help: 'servers of etcd, with commas between them, like https://10.0.0.1:2379; the store is then in etcd',
  },
  'etcd-cafile': { value: 'FILE', help: 'certificate of the authority that signed those of the etcd servers, PEM' },
  'etcd-certfile': { value: 'FILE', help: 'client certificate for etcd, PEM' },
  'etcd-keyfile': { value: 'FILE', help: 'its key, PEM' },
  'etcd-prefix': { value: 'PREFIX', help: 'start of all keys of this fleet in etcd', defaultText: '/bramble/default' },
} as const

const etcdConfig = {
  value: 'FILE',
  help: 'ControllerConfiguration with the fields of etcd; options given here take precedence',
} as const

const run = {
  'data-dir': dataDir,
  config: { value: 'FILE', help: 'ControllerConfiguration in YAML; options given here take precedence' },
  'api-port': { value: 'PORT', help: 'Kubernetes API; 0 picks a free port', range: port, defaultText: '6443' },
  'mqtt-port': { value: 'PORT', help: 'MQTT broker; 0 picks a free port', range: port, defaultText: '8883' },
  'bind-address': { value: 'ADDRESS', help: 'IP address both listen on', defaultText: 'all addresses' },
  'advertise-address': {
    value: 'HOST',
    help: 'address or name at which other machines reach this one',
    defaultText: 'its first address',
  },
  host: { value: 'NAME', help: 'additional name or address for the server certificate', repeated: true },
  kubeconfig: {
    value: 'FILE',
    help: 'additional file to write the kubeconfig of the administrator to',
  },
  'log-format': {
    value: 'FORMAT',
    help: 'log format',
    choices: ['json', 'text', 'journal'],
    defaultText: 'text on a terminal, else json',
  },
  'log-level': {
    value: 'LEVEL',
    help: 'lowest level to log',
    choices: ['error', 'warn', 'info', 'debug'],
    defaultText: 'info',
  },
  ...etcd,
  'audit-log-path': {
    value: 'FILE',
    help: "file of the audit log of writes; '' for none",
    defaultText: 'DIR/audit.log',
  },
  'audit-log-maxsize': {
    value: 'MB',
    help: 'size at which the audit log is rotated',
    range: [1, 100_000],
    defaultText: '10',
  },
  'audit-log-maxbackup': {
    value: 'COUNT',
    help: 'rotated files to keep; 0 for all',
    range: [0, 100_000],
    defaultText: '3',
  },
  'audit-log-maxage': {
    value: 'DAYS',
    help: 'days to keep rotated files; 0 for ever',
    range: [0, 100_000],
    defaultText: '90',
  },
  'keep-store-format': {
    help: 'for a version on trial: leave a store.db of an earlier format as it is; exit with 78 if this version cannot use it',
  },
  check: { help: 'check the configuration and exit' },
  version: { help: 'print the version' },
} as const satisfies Command['options']

export const runCommandRow = {
  name: 'bramble-controller run',
  about: 'run the control plane (default)',
  forms: { '': '' },
  options: run,
} as const satisfies Command

export const tokenRow = {
  name: 'bramble-controller token',
  about: 'create, list and delete the tokens that let machines join',
  text: 'Manage the tokens that let machines join the fleet.',
  forms: {
    create: 'create a token and print it',
    list: 'list all tokens',
    'delete ID': 'delete a token; ID is its six characters before the dot',
  },
  options: {
    ttl: { value: 'DURATION', help: 'lifetime, like 90m or 168h; 0 for no expiry', default: '24h' },
    description: { value: 'TEXT', help: 'what the token is for' },
    'print-join-command': { help: 'print the command to run on the machine that joins' },
    'control-plane': {
      help: 'for another controller of this fleet, with a store in etcd: print the command that gives it the authority and all keys',
    },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const cardRow = {
  name: 'bramble-controller card',
  about: 'make cards of Raspberry Pi OS whose machines join this fleet',
  text: `Make an image for cards from one of Raspberry Pi OS Lite (64-bit), Debian 12 or 13, with the address of this fleet, the hash of its authority, a
new token and the packages of the agent on its boot partition. A machine that starts with such a card installs the packages and joins.
Everything else on the image stays as it is. An image of scripts/build-image.sh has the packages already. Needs neither root nor mounts; .xz needs the program xz.
With --offer it makes no card: the dashboard of this controller offers the image to Raspberry Pi Imager, each time with a new token.`,
  forms: { IMAGE: '' },
  options: {
    offer: {
      help: 'keep the image without a token in the data directory of this controller, whose dashboard offers it',
    },
    out: { value: 'FILE', help: 'image to write, for its owner only; compressed if the name ends in .xz' },
    packages: {
      value: 'FOLDER',
      help: 'folder with the .deb files for the card: bramble-agent and bramble-runtime for arm64, with all that they need if the machine has no network, or bramble-archive-keyring; not for an image of scripts/build-image.sh',
    },
    'read-only': {
      help: 'the machine starts with a read-only root once the packages are installed, and has a partition for data (Debian 13, cards of 16 GB or more)',
    },
    'node-name': {
      value: 'NAME',
      help: 'name of the node',
      defaultText: "the machine's hostname, with the board's serial number if the name is taken",
    },
    ttl: { value: 'DURATION', help: 'lifetime of the token, like 90m or 168h', default: '24h' },
    url: {
      value: 'URL',
      help: 'where you publish the image, for the list that Raspberry Pi Imager opens',
      defaultText: 'the file of --out',
    },
    replace: { help: 'replace the file of --out, or the image of this name that is offered' },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const certificatesRow = {
  name: 'bramble-controller certificates',
  about: 'list and revoke certificates, replace the authority',
  text: 'List the certificates of the fleet, revoke them, or replace the authority. Certificates are renewed automatically.',
  forms: {
    list: 'list all certificates with their dates',
    'revoke NODE|USER':
      'revoke every certificate issued until now to a node (pi-3) or a user (kubernetes-admin), at once',
    'rollover begin': 'create the next authority; the fleet trusts both',
    'rollover change-over': 'sign with the next authority; nodes get certificates of it, both stay trusted',
    'rollover finish': 'stop trusting the previous authority',
  },
  defaultForm: 'list',
  options: {
    reason: { value: 'WORD', help: 'reason of the revocation, one word', default: 'Revoked' },
    user: { help: 'the name to revoke is that of a user, not of a node' },
    force: { help: 'do not wait for nodes that are behind' },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const backupRow = {
  name: 'bramble-controller backup',
  about: 'back up the complete state to one file',
  text: `Write the complete state of a controller, running or stopped, to one new file: every object, and the authority of the fleet.
The file is read back and verified before it gets its name. In a folder it is named by the time; the default is the current folder.
Secrets in it are encrypted. Their key is contained only with a passphrase, which then encrypts all private keys.
A store in etcd is read at one revision, while controllers run. The settings of etcd are those given here, or of the controller that runs.`,
  forms: { '[FILE|FOLDER]': '' },
  options: { 'passphrase-file': passphraseFile, config: etcdConfig, ...etcd, 'data-dir': dataDir },
} as const satisfies Command

export const restoreRow = {
  name: 'bramble-controller restore',
  about: 'restore a backup in place of the state of a stopped controller',
  text: `Restore a backup in place of the state of a stopped controller. Nodes keep running their pods meanwhile, and report
afterwards what was created since the backup. With the settings of etcd the objects are restored into etcd, below a prefix that has no key;
stop all controllers of the fleet before. The backup may be of either kind of store.`,
  forms: { FILE: '' },
  options: {
    'data-dir': dataDir,
    config: etcdConfig,
    ...etcd,
    replace: { help: 'move the present state aside' },
    'passphrase-file': passphraseFile,
    'secrets-key': {
      value: 'FILE',
      help: 'copy of secrets.key, for a backup without a passphrase',
      defaultText: 'DIR/secrets.key',
    },
    'without-secrets': { help: 'restore everything but Secrets, whose key is lost' },
  },
} as const satisfies Command

export const checkpointsRow = {
  name: 'bramble-controller checkpoints',
  about: 'show and approve what nodes report after a restore',
  text: 'After a restore, nodes that joined before report the pods they were assigned. Show, approve or stop that.',
  forms: {
    status: 'show whether checkpoints are accepted, and what waits for approval',
    close: 'stop accepting checkpoints; tokens may assign names again',
    'approve [NODE]':
      'trust the pods in the checkpoint of this node as if they had been created here: the node gets all ConfigMaps and Secrets that they name',
    'accept KIND NAMESPACE/NAME':
      'trust the present content of a secret or configmap that no controller of the fleet is known to have sent, or that nodes contradict',
    'refuse KIND NAMESPACE/NAME': 'delete such a secret or configmap',
  },
  defaultForm: 'status',
  options: { all: { help: 'approve the pods of all nodes' }, 'data-dir': dataDir, kubeconfig },
} as const satisfies Command

export const kubeconfigRow = {
  name: 'bramble-controller kubeconfig',
  about: 'create a kubeconfig for a user',
  text: `Create a kubeconfig with a certificate for a user and its groups, and print it. The user has the rights of the roles that are bound
to it: bind one with kubectl create rolebinding or clusterrolebinding.`,
  forms: { '': '' },
  options: {
    user: { value: 'NAME', help: 'name of the user' },
    group: { value: 'GROUP', help: 'a group of the user', repeated: true },
    ttl: { value: 'DURATION', help: 'lifetime of the certificate, at most one year', default: '8760h' },
    output: { value: 'FILE', help: 'file to write it to, with mode 0600, instead of printing it' },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const serviceAccountKeyRow = {
  name: 'bramble-controller service-account-key',
  about: 'replace the key that signs tokens of service accounts',
  text: `Show or replace the key that signs tokens of service accounts. Replace it in two steps, with the longest life of a token between
them: after the first, tokens of both keys are valid.`,
  forms: {
    show: 'show the keys by their key IDs',
    rotate: 'create another key, which signs from then on',
    finish: 'remove the previous key: its tokens become invalid',
  },
  defaultForm: 'show',
  options: { 'data-dir': dataDir },
} as const satisfies Command

export const secretsRow = {
  name: 'bramble-controller secrets',
  about: 'replace the key that encrypts Secrets in the store',
  text: `Show or replace the key that encrypts Secrets in the store of a controller, running or stopped. All Secrets are encrypted with the
new key, and the present one is removed. Copies of secrets.key that you keep for backups without a passphrase stay valid for those backups.`,
  forms: {
    show: 'show the key by its key ID',
    'rotate-key': 'create another key, encrypt all Secrets with it, and remove the present one',
  },
  defaultForm: 'show',
  options: { 'data-dir': dataDir },
} as const satisfies Command

export const storeRow = {
  name: 'bramble-controller store',
  about: 'move the objects of a fleet between SQLite and etcd',
  text: `Copy every object of a stopped controller into etcd, or from etcd into a new file store.db, verify the copy, and put the other one
out of use. Objects keep their names and UIDs and get other versions: clients list again.`,
  forms: {
    migrate: 'copy the objects to the store that --to names',
    formats: 'print the formats of store.db that this version uses without a migration',
  },
  options: {
    to: { value: 'STORE', help: 'where to', choices: ['etcd', 'sqlite'] },
    config: etcdConfig,
    ...etcd,
    'data-dir': dataDir,
  },
} as const satisfies Command

export const joinControlPlaneRow = {
  name: 'bramble-controller join-control-plane',
  about: 'make this machine another controller of a fleet',
  text: `Make this machine another controller of a fleet whose store is in etcd: fetch the authority, the keys and the settings from a controller that
runs, and write them here. 'bramble-controller token create --control-plane' prints this command with all its options. Then start the controller.`,
  forms: { URL: '' },
  options: {
    token: { value: 'TOKEN', help: 'token for another controller' },
    'ca-hash': { value: 'HASH', help: 'hash of the authority of the fleet, sha256:HEX' },
    'certificate-key': { value: 'HEX', help: 'key that the authority and all other keys were encrypted with' },
    'advertise-address': { value: 'HOST', help: 'address or name at which other machines reach this one' },
    config: {
      value: 'FILE',
      help: 'configuration file to write',
      default: '/etc/bramble/controller.yaml',
    },
    replace: { help: 'move the present state of this machine aside' },
    'data-dir': dataDir,
  },
} as const satisfies Command

export const loginLinkRow = {
  name: 'bramble-controller login-link',
  about: 'print a link that logs a browser in to the dashboard',
  text: `Print a link that logs one browser in to the dashboard, once and within ten minutes, with the rights of the kubeconfig or of --user.
A service account needs no link: paste its token on the page.`,
  forms: { '': '' },
  options: {
    user: { value: 'NAME', help: 'log in as this user; needs the right to impersonate it' },
    group: { value: 'GROUP', help: 'a group of the user', repeated: true },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const dashboardRow = {
  name: 'bramble-controller dashboard',
  about: 'list and revoke sessions and kiosk links of the dashboard',
  text: 'List and revoke the sessions of the dashboard, and manage read-only links for screens on a wall.',
  forms: {
    sessions: 'list the open sessions',
    'revoke ID': 'end a session at once; ID is its first column',
    'kiosk create': 'create a read-only link and print it',
    'kiosk list': 'list the read-only links',
    'kiosk revoke ID': 'revoke a read-only link; its sessions end at once',
  },
  defaultForm: 'sessions',
  options: {
    ttl: { value: 'DURATION', help: 'lifetime of a read-only link, like 720h; 0 for no expiry', default: '8760h' },
    description: { value: 'TEXT', help: 'where the screen is' },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const topRow = {
  name: 'bramble-controller top',
  about: 'show the fleet live in the terminal',
  text: `Show machines, pods that wait and events live, with the rights of the kubeconfig. Keys: Tab, arrows or hjkl, / filters, q quits.
Without a terminal the fleet is printed once: one line for each machine, waiting pod and event, with tabs between its fields.`,
  forms: { '': '' },
  options: {
    server: { value: 'URL', help: 'https://HOST:PORT of the controller', defaultText: 'that of the kubeconfig' },
    watch: { help: 'print lines as without a terminal, and each again when it changes' },
    'data-dir': dataDir,
    kubeconfig: { ...kubeconfig, help: 'kubeconfig of a user who may list nodes' },
  },
} as const satisfies Command

export const volumesRow = {
  name: 'bramble-controller volumes',
  about: 'show claims, pools and the trash, and get data back',
  text: `Show where the data of claims is, and what is in the trash; give it back to a claim, or make a folder of a machine a volume.
A CLAIM is NAMESPACE/NAME; without a namespace it is in default.`,
  forms: {
    list: 'list claims and volumes with their places and sizes',
    pools: 'list the pools of the machines',
    'show NAME': 'show a claim or a volume',
    trash: 'list what was deleted and is still there',
    'undelete CLAIM|UID':
      'give data from the trash back: creates the volume, and the claim if it is gone; the UID is that of the list',
    'move CLAIM':
      'move the data to the pool of the node --to; pods that use it are stopped at the end, and start there',
    'backup CLAIM':
      'back up the data, encrypted, to the folder of --to, NODE:PATH, pv/NAME or class/NAME, or to that of the last time; now, or by --schedule',
    backups: 'list the backups in the folders of the fleet, or in the folder --from',
    'restore BACKUP':
      'make a claim from a backup: a name of that list, alone or with its folder; nothing that is there is overwritten',
    'adopt NODE PATH':
      "make a folder of a machine the volume of a claim; those of k3s' local-path name their claim, others need --claim",
  },
  defaultForm: 'list',
  options: {
    output: { value: 'FORMAT', short: 'o', help: 'format of the lists', choices: ['table', 'json'], default: 'table' },
    claim: { value: 'CLAIM', help: 'the claim that gets the data' },
    size: { value: 'SIZE', help: 'what a new claim requests, like 5Gi', defaultText: 'that of the claim before' },
    to: {
      value: 'PLACE',
      help: 'NODE that gets the data of a move or a restore; folder for backups: NODE:PATH, or on a NAS pv/NAME or class/NAME',
    },
    rate: { value: 'SIZE', help: 'what is copied per second at most, like 10Mi', defaultText: '32Mi' },
    cancel: { help: 'end a move: the data stays where it was' },
    stop: { help: 'stop the pods that use the claim while it is backed up' },
    schedule: { value: 'SCHEDULE', help: "when backups are made, like '0 3 * * *'; '' for none any more" },
    keep: { value: 'RULE', help: 'which backups of the claim stay, like last=3,daily=7,weekly=4', defaultText: 'all' },
    from: { value: 'FOLDER', help: 'a folder with backups: NODE:PATH, pv/NAME or class/NAME' },
    as: { value: 'CLAIM', help: 'the claim that is made from the backup', defaultText: 'that of the backup' },
    'volume-only': { help: 'create no claim: the volume waits for the one that a chart creates' },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const updatesRow = {
  name: 'bramble-controller updates',
  about: 'update the agents of the fleet, ring by ring',
  text: `Bring a release of the agent to the nodes of the fleet: first to those of the first ring, after its soak to the next, last to all others.
Nodes that take the release back count as failures; with too many of them the rollout pauses, and nodes that have not begun do not begin.
Without --ring one node is first, for an hour, and then one node of a link at a time; the first failure pauses.`,
  forms: {
    list: 'list the releases that this controller serves',
    'add FOLDER':
      'serve the release in FOLDER: release.json, its signatures, and the archives; keep one of the controller',
    'start VERSION': 'bring the release to the fleet, in place of the one before',
    status: 'show how far the rollout is, or why it pauses',
    pause: 'admit no further node; nodes that have begun finish',
    resume: 'go on after a pause; failures until now no longer count',
  },
  defaultForm: 'status',
  options: {
    ring: {
      value: 'RING',
      help: 'NAME=NODES,SOAK like canary=1,1h; early=10%,24h; lab=stage=test,2h with a label of nodes; in their order',
      repeated: true,
    },
    'agents-only': { help: 'with start: do not wait until the controller runs its release of this version' },
    'per-link': { value: 'COUNT', help: 'nodes of a link at a time', range: [1, 100_000], defaultText: '1' },
    'per-zone': { value: 'COUNT', help: 'nodes of a zone at a time', range: [1, 100_000] },
    'at-once': { value: 'COUNT', help: 'nodes of the fleet at a time', range: [1, 100_000] },
    'failure-count': { value: 'COUNT', help: 'failures of a ring that pause', range: [1, 100_000], defaultText: '1' },
    'failure-percent': {
      value: 'PERCENT',
      help: 'they must also be so many percent of the nodes of the ring that have finished',
      range: [0, 100],
      defaultText: '0',
    },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const maintenanceRow = {
  name: 'bramble-controller maintenance',
  about: 'security updates and reboots of the machines',
  text: `Have security updates of the machines installed, and machines restarted that require it, one after the other: each is cordoned, its pods are
evicted within their disruption budgets, and it is uncordoned when it is Ready and healthy again. Nodes that a person has cordoned are left alone.
A machine that fails pauses the maintenance of all others until it is resumed. Only machines take part whose agents have osUpgrades or
enableRemoteReboot in their configuration.`,
  forms: {
    start: 'maintain the machines from now on, or change how',
    status: 'show which machines are under maintenance, which wait, and why it pauses',
    pause: 'begin no further machine; those that are upgraded or restarted finish',
    resume: 'go on after a pause; failures until now no longer count, and their machines are uncordoned',
  },
  defaultForm: 'status',
  options: {
    window: {
      value: 'WINDOW',
      help: 'two times of day in UTC between which a maintenance may begin, like 02:00-05:00',
      defaultText: 'at any time',
    },
    'per-link': { value: 'COUNT', help: 'machines of a link at a time', range: [1, 100_000], defaultText: '1' },
    'per-zone': { value: 'COUNT', help: 'machines of a zone at a time', range: [1, 100_000] },
    'at-once': { value: 'COUNT', help: 'machines of the fleet at a time', range: [1, 100_000], defaultText: '1' },
    'drain-timeout': {
      value: 'DURATION',
      help: 'how long the eviction of the pods of a machine may take, at most 24h',
      defaultText: '30m',
    },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const inventoryRow = {
  name: 'bramble-controller inventory',
  about: 'list what the machines of the fleet are made of',
  text: 'List board, memory, disks and network of each machine, as its agent reports them. As CSV also maker, kernel and versions.',
  forms: { '': '' },
  options: {
    output: {
      value: 'FORMAT',
      short: 'o',
      help: 'format of the list',
      choices: ['table', 'csv', 'json'],
      default: 'table',
    },
    'data-dir': dataDir,
    kubeconfig,
  },
} as const satisfies Command

export const notifyRow = {
  name: 'bramble-controller notify',
  about: 'send a test message to the channels of notifications',
  text: 'Send a test message to the channels of notifications in the configuration.',
  forms: { test: 'send a message to each channel now' },
  options: {
    config: { value: 'FILE', help: 'ControllerConfiguration in YAML' },
    channel: { value: 'NAME', help: 'only to this channel' },
  },
} as const satisfies Command

export const homeAssistantRow = {
  name: 'bramble-controller homeassistant',
  about: 'remove the devices of the fleet from Home Assistant',
  text: "Remove everything that the fleet has published on the household's MQTT broker for Home Assistant. Stop the controller before.",
  forms: { '': '' },
  options: {
    remove: { help: 'remove all devices' },
    config: { value: 'FILE', help: 'ControllerConfiguration in YAML' },
  },
} as const satisfies Command

export const brokerRow = {
  name: 'bramble-controller broker',
  about: 'install the configuration of an external MQTT server',
  text: `Copy the files that a controller with mqttBroker in its configuration keeps for an MQTT server into FOLDER: configuration, access list with a
block for each node, certificates and revocation lists. Each file is replaced atomically, and only if it changed; it gets the owner of the folder.`,
  forms: { 'configuration FOLDER': 'copy the files' },
  options: {
    for: { value: 'SERVER', help: 'the server', choices: ['mosquitto'] },
    watch: { help: 'keep running, and copy each change' },
    'pid-file': {
      value: 'FILE',
      help: 'PID file of the server: it gets SIGHUP after each change, and keeps its connections',
    },
    'data-dir': dataDir,
  },
} as const satisfies Command

const completion = {
  name: 'bramble-controller completion',
  about: 'print the completion script of a shell',
  forms: { bash: 'for bash: source it, or install it in /usr/share/bash-completion/completions' },
  options: {},
} as const satisfies Command

export const simulateRow = {
  name: 'bramble-controller simulate',
  about: 'print what a story, like a network that is off, does to a fleet',
  text: `Run the agents and the controller of a fleet in simulated time, and print what a story does to it: which pods move, which workloads
have fewer pods than they want and for how long, and when machines are NotReady. FILE is YAML of the kind Simulation: machines and manifests,
or a backup of the controller, and the events of the story. Nothing but FILE and what it names is read, and no fleet is changed.`,
  forms: { FILE: '' },
  options: {
    seed: {
      value: 'N',
      help: 'number that decides delays and other chance; the same one gives the same output',
      range: [0, 4_294_967_295],
      defaultText: '1',
    },
    output: { value: 'FORMAT', help: 'format of the output', choices: ['text', 'json'], default: 'text' },
  },
  end: `The exit code is 0 if all workloads have the pods that they want at the end, 1 if not, 3 if the simulation failed, 64 if the options
are wrong, and 78 if FILE, or what it names, cannot be used.`,
} as const satisfies Command

export const commands = {
  run: runCommandRow,
  token: tokenRow,
  card: cardRow,
  certificates: certificatesRow,
  backup: backupRow,
  restore: restoreRow,
  checkpoints: checkpointsRow,
  kubeconfig: kubeconfigRow,
  'service-account-key': serviceAccountKeyRow,
  secrets: secretsRow,
  store: storeRow,
  'join-control-plane': joinControlPlaneRow,
  'login-link': loginLinkRow,
  dashboard: dashboardRow,
  top: topRow,
  updates: updatesRow,
  maintenance: maintenanceRow,
  volumes: volumesRow,
  inventory: inventoryRow,
  notify: notifyRow,
  homeassistant: homeAssistantRow,
  broker: brokerRow,
  simulate: simulateRow,
  completion,
} as const

export const controllerProgram = {
  name: 'bramble-controller',
  about: 'control plane of a fleet',
  text: 'Run the control plane of a fleet: the Kubernetes API for kubectl, the MQTT broker for nodes, scheduler and controllers.',
  usage: ['[run] [options]', 'COMMAND [options]'],
  forms: { '': '' },
  options: run,
  commands,
  end: "'bramble-controller COMMAND --help' describes a command.",
} as const satisfies Command
