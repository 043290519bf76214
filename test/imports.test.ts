import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { importsOf } from '../scripts/test-division.ts'

/**
 * From a file whose path matches `from`, imports that match `to` point the wrong way. `typesMay`: `import type` is allowed.
 * `testsToo`: the rule holds for tests as well.
 */
type Wrong = {
  readonly from: RegExp
  readonly to: RegExp
  readonly typesMay?: true
  readonly testsToo?: true
  readonly why: string
}

const nodeParts = '(node|eviction|pods|shutdown|health|usage|sessions|network|updates)'
const fleetParts = '(broker|controllers|scheduler|apiserver)'
/** Parts of the controller that clients of the fleet may use: its API, the store to read, usage figures, images of cards, and the state of nodes, volumes, rollouts and maintenance. */
const openToClients = `(${[
  'apiserver/(?!http/)',
  'cards/(card-files|imager-manifest)\\.ts$|cards/offered/',
  'controllers/maintenance/maintenance-object\\.ts$',
  'controllers/node-lifecycle/(link-suspicion|zones)\\.ts$',
  'controllers/rollouts/(node-facts|release-out-of-turn|rollout-object|rollout-wish)\\.ts$',
  'controllers/volumes/fill-level\\.ts$',
  'store/(informer|revocations|store)\\.ts$',
  'usage/',
].join('|')})`
const wrong: readonly Wrong[] = [
  { from: /^api\//, to: /^(?!api\/|typebox)/, why: 'api/ is words only: it imports nothing but TypeBox' },
  { from: /^daemon\//, to: /^(?!daemon\/|api\/|node:|yaml$|unix-dgram$)/, why: 'daemon/ imports api/ and Node' },
  {
    from: /^certs\/(?!cli\.ts|command-table\.ts)/,
    to: /^(?!certs\/|api\/|daemon\/durable-file\.ts$|node:|node-forge(\/|$))/,
    why: 'certs/ imports api/, node-forge, and how daemon/ makes files durable',
  },
  {
    from: /^certs\/(cli|command-table)\.ts$/,
    to: /^(?!certs\/|api\/|node:|daemon\/process\/)/,
    why: 'the command of certs/ imports api/ and the command lines of daemon/process/',
  },
  {
    from: /^(api|daemon|agent|broker-controller|dashboard)\//,
    to: /^certs\/(cli|command-table)\.ts$/,
    why: 'the command of certs/ is a program of its own',
  },
  {
    from: /^agent\//,
    to: /^(broker-controller|dashboard)\//,
    testsToo: true,
    why: 'the agent and the controller share api/ and the wire only',
  },
  {
    from: /^(broker-controller|dashboard)\//,
    to: /^agent\//,
    testsToo: true,
    why: 'the agent and the controller share api/ and the wire only',
  },
  {
    from: /^(agent|broker-controller|dashboard)\//,
    to: /^(scripts|test|bench|sim)\//,
    why: 'programs do not import scripts, tests, benchmarks or the simulator',
  },
  {
    from: /^agent\/(?!main\.ts|update\.ts|assembly\/|doctor\/adapters\/)/,
    to: /^agent\/(doctor\/)?adapters\//,
    why: 'only the programs main.ts and update.ts, and assembly/, build adapters',
  },
  {
    from: /^agent\/(?!assembly\/)\w+\//,
    to: /^agent\/[\w-]+\.ts$/,
    why: 'parts are handed their settings by assembly/',
  },
  {
    from: RegExp(`^agent/${nodeParts}/`),
    to: RegExp(`^agent/${nodeParts}/`),
    typesMay: true,
    why: 'of each other, parts of an agent import types only',
  },
  {
    from: /^agent\/(?!doctor\/|main\.ts)/,
    to: /^agent\/doctor\//,
    typesMay: true,
    why: 'an agent that runs has no doctor in it',
  },
  {
    from: RegExp(`^broker-controller/${fleetParts}/`),
    to: RegExp(`^broker-controller/${fleetParts}/`),
    why: 'parts of the controller meet in the store',
  },
  {
    from: RegExp(`^broker-controller/${fleetParts}/`),
    to: /^broker-controller\/(store\/(sqlite\/|\w+-store\.ts)|data-directory\/|[\w-]+\.ts$)/,
    why: 'parts of the controller use the store by its interface',
  },
  {
    from: RegExp(`^broker-controller/${fleetParts}/`),
    to: /^broker-controller\/(commands|configuration|replicas)\//,
    why: 'parts of the controller are handed their settings by assembly/',
  },
  {
    from: /^broker-controller\/(?!main\.ts)/,
    to: /^broker-controller\/assembly\//,
    typesMay: true,
    why: 'assembly/ composes the program: only main.ts runs it',
  },
  {
    from: /^broker-controller\/cel\//,
    to: /^(?!broker-controller\/cel\/|api\/)/,
    why: 'expressions are evaluated without the rest of the controller: cel/ imports api/',
  },
  {
    from: /^broker-controller\/(sessions|usage)\//,
    to: /^broker-controller\/(?!(sessions|usage)\/)/,
    why: 'where the API and the broker meet, neither is known',
  },
  {
    from: /^dashboard\/(browser|model)\//,
    to: /^(?!api\/|dashboard\/(browser|model)\/|preact(\/|$)|@xterm\/)/,
    why: 'the page runs in a browser: it shares types and rules with the programs, no code of Node.js',
  },
  {
    from: /^(?!dashboard\/(browser|model)\/)/,
    to: /^dashboard\/(browser|model)\//,
    why: 'the programs serve the page as built files',
  },
  {
    from: /^dashboard\/server\//,
    to: RegExp(`^(?!api/|daemon/|node:|dashboard/server/|broker-controller/${openToClients})`),
    why: "the dashboard's server is a client of the fleet: it uses what the controller has for such",
  },
  {
    from: /^(?!dashboard\/|broker-controller\/assembly\/)/,
    to: /^dashboard\//,
    why: 'the controller works without the dashboard: only assembly/ imports its server',
  },
  {
    from: /^broker-controller\/integrations\//,
    to: RegExp(`^(dashboard/|broker-controller/(?!integrations/|${openToClients}))`),
    why: 'integrations are clients of the fleet: they use what the controller has for such',
  },
  {
    from: /^(?!broker-controller\/(integrations\/|assembly\/|commands\/(home-assistant|notify)-command\.ts$))/,
    to: /^broker-controller\/integrations\/(?!home-assistant\/home-assistant-settings\.ts$|notifications\/notify-settings\.ts$)/,
    why: 'the controller works without integrations: only assembly/ and their own commands import them',
  },
  {
    from: /^broker-controller\/store\//,
    to: /^broker-controller\/(?!store\/)/,
    why: 'the store imports no other part',
  },
  {
    from: /^(?!sim\/)/,
    to: /^sim\//,
    testsToo: true,
    why: 'the simulator is a program of its own: it imports the others, and none imports it',
  },
  {
    from: /^sim\/(?!forecast\/)/,
    to: /^sim\/forecast\//,
    why: 'the worlds of the simulator are those of its tests and of its command',
  },
  {
    from: /^(?!.*\/testing\/|test\/|sim\/)/,
    to: /\/testing\//,
    why: 'testing/ folders are for tests, and for the simulator, which has no real machines',
  },
]

/** Packages of others, and the files that may name them; what belongs to no row may be named in agent/adapters/ only. */
const vendors: readonly { readonly name: RegExp; readonly at: RegExp }[] = [
  { name: /^tap$/, at: /\.test\.ts$|\/testing\/|^test\/|^scripts\/unit-test-worker\.ts$/ },
  { name: /^typebox/, at: /^api\// },
  { name: /^yaml$/, at: /^daemon\/yaml\/yaml-reader\.ts$|^scripts\// },
  { name: /^unix-dgram$/, at: /^daemon\/watchdog\/systemd-notifier\.ts$/ },
  { name: /^node-forge(\/|$)/, at: /^certs\// },
  { name: /^esbuild$/, at: /^scripts\// },
  { name: /^mqtt-packet$/, at: /^(agent\/adapters\/mqtt\/|broker-controller\/broker\/mqtt[-/]|bench\/fleet\/)/ },
  {
    name: /^mqtt(\/|$)/,
    at: /^agent\/adapters\/mqtt\/|^broker-controller\/integrations\/household\/household-link\.ts$|\.test\.ts$|\/testing\//,
  },
  { name: /^ws$/, at: /^broker-controller\/apiserver\/streams\/web-socket\.ts$/ },
  { name: /^(preact|@xterm)(\/|$)/, at: /^dashboard\/browser\// },
  { name: /^@grpc\/grpc-js$/, at: /^broker-controller\/store\/etcd\/etcd-(client|endpoints)\.ts$/ },
  { name: /^better-sqlite3$/, at: /^broker-controller\/store\/sqlite\/sqlite-[a-z]+\.ts$/ },
]

/** Folders of agent/pods, from the lowest floor to the highest. A folder imports from lower floors only; the pod manager is on top. */
const podFloors: readonly (readonly string[])[] = [
  ['wanted'],
  ['record', 'static'],
  ['options'],
  ['probes'],
  ['images', 'volumes'],
  ['garbage', 'plan'],
  ['containers', 'status'],
  ['admission'],
  ['sync'],
]

type Arrow = { readonly from: string; readonly to: string; readonly typesOnly: boolean }

const root = fileURLToPath(new URL('../..', import.meta.url))
const folders = ['api', 'daemon', 'certs', 'agent', 'broker-controller', 'dashboard', 'scripts', 'sim']
const isTest = (path: string) => /\.test\.ts$|\/testing\//.test(path)

const files = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith('.ts') && !path.includes('node_modules')),
)
const arrows = files.flatMap((from) => arrowsOf(from, readFileSync(join(root, from), 'utf8')))

test('every import points the right way', async (t) => {
  t.ok(arrows.length > 50, `${arrows.length} imports in ${files.length} files`)
  t.same(arrows.flatMap(problemsOf), [])
})

test('the parts of the agent import types of each other one way', async (t) => {
  /** Each part imports those before it: values of `runtime`, which is of no part, and types of the others. */
  const order = ['runtime', 'node', 'usage', 'eviction', 'pods', 'health', 'shutdown', 'network', 'sessions', 'updates']
  const partAt = (path: string) => order.indexOf(/^agent\/([\w-]+)\//.exec(path)?.[1] ?? '')
  const between = arrows.filter(
    ({ from, to }) => partAt(from) >= 0 && partAt(to) >= 0 && partAt(from) !== partAt(to) && !isTest(from),
  )
  t.ok(between.length > 30, `${between.length} imports`)
  t.same(
    between.filter(({ from, to }) => partAt(to) > partAt(from)).map(({ from, to }) => `${from} → ${to}`),
    [],
  )
  const parts = new Set(between.flatMap(({ from, to }) => [partAt(from), partAt(to)]))
  t.equal(parts.size, order.length, 'every part of the list exists')
})

test('imports between the folders of agent/pods run one way', async (t) => {
  const folderOf = (path: string) => /^agent\/pods\/([\w-]+)\//.exec(path)?.[1] ?? 'pod-manager'
  const floorOf = (path: string) => {
    const floor = podFloors.findIndex((names) => names.includes(folderOf(path)))
    return floor < 0 ? podFloors.length : floor
  }
  const within = arrows.filter(
    ({ from, to }) => from.startsWith('agent/pods/') && to.startsWith('agent/pods/') && !isTest(from),
  )
  t.ok(within.length > 100, `${within.length} imports`)
  t.same(
    within
      .filter(({ from, to }) => folderOf(from) !== folderOf(to) && floorOf(from) <= floorOf(to))
      .map(({ from, to }) => `${from} → ${to}`),
    [],
  )
  const folders = new Set(within.map(({ from }) => folderOf(from)))
  t.same(
    podFloors.flat().filter((name) => !folders.has(name) && name !== 'wanted'),
    [],
    'every folder of the list exists',
  )
})

test('the folders of agent/node import one way', async (t) => {
  /** Each folder imports itself and those before it. */
  const order = ['certificate', 'connection', 'registration', 'status']
  const folderOf = (path: string) => path.split('/')[2] ?? ''
  const inside = arrows.filter(
    ({ from, to }) => from.startsWith('agent/node/') && to.startsWith('agent/node/') && !isTest(from),
  )
  t.ok(inside.length > 10, `${inside.length} imports`)
  t.same(
    inside
      .filter(({ from, to }) => order.indexOf(folderOf(to)) > order.indexOf(folderOf(from)))
      .map(({ from, to }) => `${from} → ${to}`),
    [],
  )
  t.same(
    [...new Set(inside.map(({ from }) => folderOf(from)))].filter((folder) => !order.includes(folder)),
    [],
  )
})

test('the folders of the API import one way', async (t) => {
  const apiserver = 'broker-controller/apiserver/'
  /** Each folder imports itself and those before it; '' is the folder around them. */
  const order = [
    'structural',
    'wire',
    'managed-fields',
    'handlers',
    'expressions',
    'quota',
    'pod-security',
    'webhooks',
    'policies',
    'conversion',
    'authentication',
    'authorization',
    'flow-control',
    'audit',
    'streams',
    'releases',
    'proxy',
    'kinds',
    'aggregator',
    'reviews',
    'figures',
    'fleet',
    'browser-sessions',
    'openapi',
    'forwarding',
    '',
    'filters',
    'http',
  ]
  const folderOf = (path: string) =>
    path.slice(apiserver.length).includes('/') ? (path.slice(apiserver.length).split('/')[0] ?? '') : ''
  const inside = arrows.filter(
    ({ from, to }) => from.startsWith(apiserver) && to.startsWith(apiserver) && !isTest(from),
  )
  t.ok(inside.length > 100)
  t.same(
    inside
      .filter(({ from, to }) => order.indexOf(folderOf(to)) > order.indexOf(folderOf(from)))
      .map(({ from, to }) => `${from} → ${to}`),
    [],
  )
  t.same(
    [...new Set(inside.map(({ from }) => folderOf(from)))].filter((folder) => !order.includes(folder)),
    [],
  )
})

test('the controller works without the dashboard and the integrations', async (t) => {
  const at = 'broker-controller/apiserver/routes.ts'
  const found = [
    `import { openDashboard } from '../../dashboard/server/dashboard.ts'`,
    `import { problemsOf } from '../integrations/notifications/problems.ts'`,
    `import { openApi } from '../assembly/open-api.ts'`,
  ].flatMap((text) => arrowsOf(at, text).flatMap(problemsOf))
  t.equal(found.length, 3)
  const back = `import { scheduler } from '../../scheduler/scheduler.ts'`
  t.equal(arrowsOf('broker-controller/integrations/household/paced-reading.ts', back).flatMap(problemsOf).length, 1)
  const allowed = `import { informer } from '../../store/informer.ts'`
  t.same(arrowsOf('broker-controller/integrations/household/paced-reading.ts', allowed).flatMap(problemsOf), [])
})

test('a package of others is named only where it belongs', async (t) => {
  t.same(
    arrows.filter(({ from, to }) => isVendor(to) && !mayName(from, to)).map(({ from, to }) => `${from} names ${to}`),
    [],
  )
})

test('an import in the wrong direction is found', async (t) => {
  const found = arrowsOf(
    'agent/pods/plan/pod-plan.ts',
    `import { docker } from '../../adapters/docker/docker-runtime.ts'`,
  )
  t.same(found.flatMap(problemsOf), [
    'agent/pods/plan/pod-plan.ts → agent/adapters/docker/docker-runtime.ts: only the programs main.ts and update.ts, and assembly/, build adapters',
  ])
})

function arrowsOf(from: string, text: string): readonly Arrow[] {
  return importsOf(from, text).map((one) => ({ from, ...one }))
}

function problemsOf({ from, to, typesOnly }: Arrow): string[] {
  const sameFolder = dirname(from) === dirname(to) || partOf(from) === partOf(to)
  return wrong
    .filter((rule) => rule.from.test(from) && rule.to.test(to) && !sameFolder && !(typesOnly && rule.typesMay))
    .filter((rule) => rule.testsToo || !isTest(from))
    .map(({ why }) => `${from} → ${to}: ${why}`)
}

/** `agent/pods` of anything below it: a part may have folders of its own. The doctor's adapters are a part beside the doctor. */
function partOf(path: string): string {
  return /^agent\/doctor\/adapters\//.test(path) ? 'agent/doctor/adapters' : path.split('/').slice(0, 2).join('/')
}

function isVendor(to: string): boolean {
  return !to.startsWith('node:') && !folders.some((folder) => to.startsWith(`${folder}/`))
}

function mayName(from: string, to: string): boolean {
  if (isTest(from)) return true
  const rows = vendors.filter(({ name }) => name.test(to))
  return rows.length === 0 ? from.startsWith('agent/adapters/') : rows.some(({ at }) => at.test(from))
}
