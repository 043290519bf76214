/** Programs that a machine may not have come with a package: one that nothing installs is missing on the first fresh machine. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { everywhere, packagesOf, requiredPackages } from './support/program-packages.ts'
import { functionsOf, programsInScript, programsInSource, type StartedProgram } from './support/started-programs.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** `run` or `command` in these is one of kubectl, of the controller, or of no program. */
const otherCommands =
  /^(test\/(kubectl-versions|access|store-in-etcd|hostile\/restored-store)\.test|broker-controller\/(commands\/certificates-command|broker\/inbox\/latest-only)\.test|broker-controller\/store\/sqlite\/sqlite-secrets)\.ts$/
/** Words of scripts that look like commands: elements of arrays, and text of other languages. */
const noPrograms = new Set(
  'a agent bramble-controller dump enc free get ready rev-parse stays token version virtio_blk'.split(' '),
)
/** Scripts start these only where they are, or in another root. */
const guarded = new Set(['sudo', 'systemctl', 'docker'])

const sources = ['api', 'daemon', 'certs', 'agent', 'broker-controller', 'dashboard', 'scripts', 'test']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((path) => !path.includes('node_modules'))
const isForTests = (path: string) => /\.test\.ts$|\/testing\/|^test\/|^scripts\//.test(path)
const typescript = sources.filter((path) => path.endsWith('.ts') && !otherCommands.test(path))
const scripts = sources.filter((path) => path.endsWith('.sh'))
const packageScripts = sources.filter((path) => /^scripts\/packages\/.*\/(post|pre)/.test(path))
const functions = new Set(scripts.flatMap((path) => functionsOf(read(path))))

const inSources = (paths: readonly string[]) => paths.flatMap((path) => programsInSource(path, read(path)))
const inScripts = (paths: readonly string[]) =>
  paths.flatMap((path) => programsInScript(path, read(path), new Set([...functions, ...noPrograms])))

test('scripts/test.sh installs what tests and their helpers start', async (t) => {
  const started = inSources(typescript.filter(isForTests))
  t.ok(new Set(started.map(({ name }) => name)).size > 40, 'the scan finds programs')
  t.same(problems(started, wantedForTests(), "add 'want PACKAGE REASON' to install_for_tests in scripts/test.sh"), [])
  // What was missing once: no package that is installed has it.
  const others = wantedForTests().filter((name) => name !== 'iputils-ping')
  t.match(problems(started, others, 'install it'), [
    /^ping \(iputils-ping\): .*nft-ipv6-guard\.test\.ts.*: install it$/,
  ])
})

test('scripts/test.sh installs each part whose absence fails a test', async (t) => {
  const packages = [
    ...read('test/support/missing-parts.ts').matchAll(/apt-get install (?:--[\w-]+ )*([\w.+ -]+)/g),
  ].flatMap(([, names = '']) => names.split(' '))
  t.ok(packages.length > 20, `${packages.length} packages`)
  const wanted = new Set([...wantedForTests(), ...requiredPackages])
  t.same(
    packages.filter((name) => !wanted.has(name)),
    [],
  )
})

test('a script installs what it starts, or scripts/test.sh has installed it', async (t) => {
  const all = inScripts(scripts)
  t.ok(new Set(all.map(({ name }) => name)).size > 60, 'the scan finds programs')
  for (const path of scripts) {
    const own = wantedBy(path)
    const started = inScripts([path]).filter(({ name }) => !guarded.has(name))
    const isBeforeTests = own.length > 0 && !path.startsWith('scripts/support/')
    const there = [...own, ...(isBeforeTests ? wantedBy('scripts/support/packages.sh') : wantedEverywhere())]
    t.same(problems(started, there, `add 'want PACKAGE REASON' to ${path}`), [], path)
  }
})

test('each package depends on what its program and its scripts start', async (t) => {
  const programs = {
    'bramble-agent': /^(agent|daemon|certs)\//,
    'bramble-controller': /^(broker-controller|dashboard|daemon|certs)\//,
  }
  for (const [name, folders] of Object.entries(programs)) {
    const parts = typescript.filter((path) => folders.test(path) && !isForTests(path))
    const ofPackage = packageScripts.filter((path) => path.includes(`/${name}/`))
    const control = read(`scripts/packages/${name}/control`)
    const needed = [...control.matchAll(/^(?:Depends|Recommends): (.*)$/gm)]
      .flatMap(([, list = '']) => list.split(/[,|]/))
      .map((one) => one.trim().split(' ')[0] ?? '')
    t.ok(needed.length > 0)
    t.same(
      problems([...inSources(parts), ...inScripts(ofPackage)], needed, `name it in scripts/packages/${name}/control`),
      [],
      name,
    )
  }
})

test('a program that is in no list is named, with what to do', async (t) => {
  const started = programsInSource(
    'test/x.test.ts',
    "spawn('iperf3', ['--server'])\nexecFileSync('sh', ['-c', 'true | wg show'])",
  )
  t.same(problems(started, [], 'install it'), [
    'iperf3: test/x.test.ts:1: it is in no list of test/support/program-packages.ts: add it there, with its package',
    'wg (wireguard-tools): test/x.test.ts:2: install it',
  ])
})

test('a program is found in each form in which sources start one', async (t) => {
  const names = (text: string) => programsInSource('test/x.ts', text).map(({ name }) => name)
  t.same(names("const run = promisify(execFile)\nawait run('jq', [])"), ['jq'])
  t.same(names("await promisify(execFile)('/usr/bin/python3', [])"), ['python3'])
  t.same(names("const run = async (file: string, ...args: string[]) => execFile(file, args)\nawait run('jq', '.')"), [
    'jq',
  ])
  t.same(names("const nft = 'nft'\nrunToolOrThrow('Cannot list', nft, [])"), ['nft'])
  t.same(names("startProgram(['kubectl', 'get'], end)"), ['kubectl'])
  t.same(names("space.run('ip', 'route')\nspawn(...inSpace(place, 'busybox', 'nc'))"), ['ip', 'busybox'])
  t.same(names("machine.run('hostname')\nkubectl.run('get')\n/x/.exec('text')"), [])
  const script =
    "usage() {\n  cat <<'TXT'\nUse jq\nTXT\n}\n# sysctl\n[ -n \"$(nft list)\" ] || VALUE=1 ping 'a; b'\ncase $1 in\n  up | down) ip link ;;\nesac\n"
  const found = programsInScript('x.sh', script, new Set(functionsOf(script)))
  t.same(found.map(({ name }) => name).sort(), ['cat', 'ip', 'nft', 'ping'])
})

function wantedBy(path: string): readonly string[] {
  return [...read(path).matchAll(/\bwant '?([\w.+-]+)/g)].flatMap(([, name]) => name ?? [])
}

/** With what its parts want. */
function wantedForTests(): readonly string[] {
  return [...wantedBy('scripts/test.sh'), ...wantedBy('scripts/support/packages.sh')]
}

function wantedEverywhere(): readonly string[] {
  return [
    ...wantedBy('scripts/test.sh'),
    ...wantedBy('scripts/support/packages.sh'),
    ...wantedBy('scripts/boot-arm64.sh'),
  ]
}

/** A line for each program that nothing of `there` has. Other words of a command count where they are known as programs. */
function problems(started: readonly StartedProgram[], there: readonly string[], remedy: string): readonly string[] {
  const places = new Map<string, Set<string>>()
  const note = (name: string, place: string) => {
    if (everywhere.has(name) || packagesOf[name]?.some((one) => there.includes(one))) return
    places.set(name, (places.get(name) ?? new Set()).add(place))
  }
  for (const { name, place, others } of started) {
    note(name, place)
    for (const other of others) if (Object.hasOwn(packagesOf, other)) note(other, place)
  }
  const unknown = 'it is in no list of test/support/program-packages.ts: add it there, with its package'
  return [...places].map(([name, at]) => {
    const [first] = packagesOf[name] ?? []
    return `${name}${first === undefined ? '' : ` (${first})`}: ${[...at].slice(0, 3).join(', ')}: ${first === undefined ? unknown : remedy}`
  })
}
