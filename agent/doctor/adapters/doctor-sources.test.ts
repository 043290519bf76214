/** The doctor on files: saved trees, what it repairs there, and what it prints. */

import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { decode } from '../../../api/decode.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { type DoctorNeeds, doctorCommand } from '../doctor-command.ts'
import { DoctorReportSchema } from '../report.ts'
import { doctorSources } from './doctor-sources.ts'
import { listeningPorts } from './listening-ports.ts'
import { fixFiles } from './machine-files.ts'

const defaults = { dataDir: '/var/lib/bramble/agent', dockerSocket: '/var/run/docker.sock' }
/** A machine that stands still for some seconds is not a check that hangs. */
const patienceMs = 60_000
const limits = { spaceMs: patienceMs, healthMs: patienceMs, imagesMs: patienceMs }
const terminal = { columns: 80, isColoured: false }
const usual = {
  path: undefined,
  trouble: undefined,
  healthzPort: 10248,
  hasMulticastDNS: false,
  shutdownSeconds: 30,
  pools: [],
  eviction: { evictionHard: [], evictionSoft: [] },
}

async function doctor(argv: readonly string[], more: Partial<DoctorNeeds> = {}) {
  let stdout = ''
  let stderr = ''
  const code = await doctorCommand(argv, {
    version: '1.2.3',
    sourcesFor: (request) => doctorSources({ request, defaults, readConfiguration: async () => usual, limits }),
    ask: undefined,
    stdout: (text) => {
      stdout += text
    },
    stderr: (text) => {
      stderr += text
    },
    terminal,
    lookMs: patienceMs,
    ...more,
  })
  return { code, stdout, stderr }
}

async function report(t: Test, ...argv: readonly string[]) {
  const { code, stdout } = await doctor([...argv, '-o', 'json'])
  const decoded = decode(DoctorReportSchema, JSON.parse(stdout))
  if (!decoded.ok) throw new Error(`Not a report: ${stdout}`)
  t.same(decoded.unknownFields, [])
  const { findings } = decoded.value
  return { ...decoded.value, code, of: (check: string) => findings.find((one) => one.check === check) }
}

/** As a card of Raspberry Pi OS that was written with an old image and opened to everybody. */
function treeToFix(t: Test): string {
  const root = testFolder(t)
  cpSync(savedTree('pi-os-without-memory-cgroup'), root, { recursive: true })
  const files = {
    'etc/hostname': 'pi-07\n',
    'etc/machine-id': '3d1219c7c4c5404aaa1f6d2a48adfda4\n',
    'etc/os-release': 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    'etc/systemd/logind.conf': '[Login]\n#InhibitDelayMaxSec=5\n',
    'usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf': '[Login]\nInhibitDelayMaxSec=20\n',
    'etc/systemd/journald.conf': '[Journal]\n',
    'etc/apt/apt.conf.d/50unattended-upgrades': 'Unattended-Upgrade::Automatic-Reboot "true";\n',
    'var/lib/bramble/agent/identity.json': '{',
    'run/systemd/timesync/synchronized': '',
  }
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  chmodSync(join(root, 'var/lib/bramble/agent'), 0o755)
  chmodSync(join(root, 'var/lib/bramble/agent/identity.json'), 0o644)
  return root
}

test('a saved tree is looked at, and nothing of this machine', async (t) => {
  const root = treeToFix(t)
  const found = await report(t, '--root', root)
  t.equal(found.code, 1)
  t.match(found, { root, hostname: 'pi-07', machine: /Debian GNU\/Linux 12/, restartNeeded: false, fixed: [] })
  t.match(found.of('memory-cgroup'), {
    verdict: 'problem',
    remedy: /\/boot\/firmware\/cmdline\.txt/,
    fix: /before-bramble/,
  })
  t.match(found.of('shutdown-delay'), { verdict: 'warning', found: /20 s.*set by .*unattended-upgrades/ })
  t.match(found.of('automatic-restart'), { verdict: 'warning' })
  t.match(found.of('clock'), { verdict: 'ok' })
  t.match(found.of('identity'), { verdict: 'unknown', found: /damaged/ })
  t.match(found.of('identity-file'), { verdict: 'problem' })
  t.match(found.of('docker'), { verdict: 'unknown' })
  t.equal(found.of('controller-port'), undefined)
  t.equal(found.of('healthz-port'), undefined)
})

test('the sensors of saved boards', async (t) => {
  const weak = await report(t, '--root', savedTree('pi-4-weak-supply'))
  t.match(weak.of('supply-voltage'), { verdict: 'problem', remedy: /short thick cable/ })
  t.match(weak.machine, /Raspberry Pi 4/)
  const worn = await report(t, '--root', savedTree('compute-module-4-worn'))
  t.match(worn.of('storage-wear'), { verdict: 'problem', remedy: /^Replace it/ })
  t.match((await report(t, '--root', savedTree('pi-5-hot'))).of('temperature'), { verdict: 'problem' })
  t.match((await report(t, '--root', savedTree('pi-zero-2-weak-wifi'))).of('wifi'), { verdict: 'problem' })
  const empty = await doctor(['--root', testFolder(t)])
  t.equal(empty.code, 0, 'what is not known is neither wrong nor a warning')
})

test('what can be put right is put right once, and a copy of the line for the kernel is kept', async (t) => {
  const root = treeToFix(t)
  const cmdline = join(root, 'boot/firmware/cmdline.txt')
  const before = readFileSync(cmdline, 'utf8')
  const first = await doctor(['--root', root, '--fix', '--yes'])
  t.match(
    first.stderr,
    /Make the line of \/boot\/firmware\/cmdline\.txt ask for memory limits/,
    'printed before it is done',
  )
  t.match(first.stdout, /Done: Make the line.*\n.*Restart the machine for this/s)
  const after = readFileSync(cmdline, 'utf8')
  t.equal(after, `${before.trim()} cgroup_enable=memory cgroup_memory=1\n`)
  t.equal(readFileSync(`${cmdline}.before-bramble`, 'utf8'), before)
  const dropIn = join(root, 'etc/systemd/logind.conf.d/zz-bramble.conf')
  t.match(readFileSync(dropIn, 'utf8'), /\[Login\]\nInhibitDelayMaxSec=30\n/)
  const modeOf = (path: string) => statSync(join(root, path)).mode & 0o777
  t.equal(modeOf('var/lib/bramble/agent'), 0o700)
  t.equal(modeOf('var/lib/bramble/agent/identity.json'), 0o600)
  t.equal(modeOf('etc/systemd/logind.conf.d/zz-bramble.conf'), 0o644)

  const second = await report(t, '--root', root, '--fix', '--yes')
  t.same(second.fixed, [], 'nothing is left to do')
  t.match(second.of('memory-cgroup'), { verdict: 'warning', remedy: /^Restart the machine/ })
  t.match(second.of('shutdown-delay'), {
    verdict: 'ok',
    found: /zz-bramble\.conf, which wins over .*unattended-upgrades/,
  })
  t.equal(readFileSync(cmdline, 'utf8'), after)
  t.equal(readFileSync(`${cmdline}.before-bramble`, 'utf8'), before, 'the first copy stays')
  t.same(readdirSync(dirname(cmdline)).toSorted(), ['cmdline.txt', 'cmdline.txt.before-bramble'])
  t.equal(second.code, 2, 'only warnings are left')
})

test('nothing is done without a yes', async (t) => {
  const root = treeToFix(t)
  const cmdline = join(root, 'boot/firmware/cmdline.txt')
  const before = readFileSync(cmdline, 'utf8')
  t.match((await doctor(['--root', root, '--fix'])).stderr, /not a terminal; use --yes/)
  const questions: string[] = []
  const picky = await doctor(['--root', root, '--fix'], {
    ask: async (question) => {
      questions.push(question)
      return questions.length === 1
    },
  })
  t.equal(questions.length, 4)
  t.match(picky.stdout, /^Done: Make the line/m, 'the first was wanted')
  t.not(readFileSync(cmdline, 'utf8'), before)
  t.equal(statSync(join(root, 'var/lib/bramble/agent')).mode & 0o777, 0o755)
})

test('what was changed meanwhile, or cannot be written, is left and reported', async (t) => {
  const root = treeToFix(t)
  const step = { kind: 'write', path: '/boot/cmdline.txt', content: 'a b\n', mode: 0o644, instead: 'a\n' } as const
  await t.rejects(fixFiles(root, step), /changed meanwhile/)
  writeFileSync(join(root, 'etc/systemd/logind.conf.d'), 'a file, where a folder should be')
  const { stdout } = await doctor(['--root', root, '--fix', '--yes'])
  t.match(stdout.replace(/\s+/g, ' '), /Not done: Write \/etc\/systemd\/logind\.conf\.d\/zz-bramble\.conf/)
  t.match(stdout, /^Done: Make the line/m)
})

test('the report for people fits the terminal, worst first, and has colours only when it may', async (t) => {
  const root = treeToFix(t)
  const { stdout } = await doctor(['--root', root])
  const lines = stdout.split('\n').filter((line) => !line.includes(root))
  t.ok(
    lines.every((line) => line.length <= 80 || !line.trim().includes(' ')),
    stdout,
  )
  t.match(stdout, /PROBLEM {2}memory-cgroup.*\n\nwarning .*\n\nok .*\n\nunknown .*\n\n\d problems, /s)
  t.notOk(stdout.includes('\u001b'))
  const coloured = await doctor(['--root', root], { terminal: { columns: 100, isColoured: true } })
  t.ok(coloured.stdout.includes('\u001b[31;1mPROBLEM'))
})

test('wrong usage is rejected', async (t) => {
  for (const argv of [['--port', '0'], ['--yes'], ['-o', 'yaml'], ['--fix', '-o', 'json'], ['--what'], ['more']]) {
    const { code, stderr } = await doctor(argv)
    t.equal(code, 64, argv.join(' '))
    t.match(stderr, /doctor --help/)
  }
  const { code, stdout } = await doctor(['--help'])
  t.equal(code, 0)
  t.match(stdout, /Exit status: 0 .*1 .*2 /)
})

test('the program that listens on a port is found', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  t.match(await listeningPorts('/', [1, port], patienceMs), [{ port, by: RegExp(`\\(process ${process.pid}\\)$`) }])
  t.same(
    await listeningPorts('/', [port], 0),
    [{ port, by: undefined }],
    'a machine too busy to be searched is reported as that',
  )
  t.same(await listeningPorts('/', [1]), [])
  t.equal(await listeningPorts(testFolder(t), [port]), undefined)
})

/** The sources for a root, with the usual folders unless named. */
function sourcesFor(root: string, more: { readonly dataDir?: string; readonly dockerSocket?: string } = {}) {
  const request = { root, dataDir: undefined, dockerSocket: undefined, configPath: undefined, ...more }
  return doctorSources({ request, defaults, readConfiguration: async () => usual, limits })
}

test('the card of a path is the device of its longest mount, the last of several', async (t) => {
  const mount = (device: string, point: string) => `20 1 ${device} / ${point} rw - ext4 /dev/x rw`
  const root = testFolder(t, {
    proc: {
      self: {
        mountinfo: [
          mount('8:1', '/'),
          mount('179:2', '/data'),
          mount('179:13', '/data/old'),
          mount('8:2', '/both'),
          mount('179:2', '/both'),
          '',
        ].join('\n'),
      },
    },
    sys: {
      dev: {
        block: {
          '8:1': t.fixture('symlink', '../../devices/pci/block/sda/sda1'),
          '8:2': t.fixture('symlink', '../../devices/pci/block/sda/sda2'),
          '179:2': t.fixture('symlink', '../../devices/platform/mmc0/block/mmcblk0/mmcblk0p2'),
          '179:13': t.fixture('symlink', '../../devices/platform/mmc1/block/mmcblk12'),
        },
      },
    },
  })
  const { machine } = sourcesFor(root)
  for (const [path, card] of [
    ['/data', 'mmcblk0'],
    ['/data/x', 'mmcblk0'],
    ['/data/old/x', 'mmcblk12'],
    ['/database', undefined],
    ['/', undefined],
    ['/both/x', 'mmcblk0'],
  ] as const) {
    t.equal(await machine.cardOf(path), card, path)
  }
  t.equal(await sourcesFor(testFolder(t)).machine.cardOf('/'), undefined, 'without a list of mounts')
})

test('a saved machine has its own name, uptime and files, and no live parts', async (t) => {
  const root = testFolder(t, {
    etc: { hostname: 'pi-07\n' },
    proc: { uptime: '100.5 1\n' },
    boot: { 'cmdline.txt': 'quiet\n' },
    var: { lib: { bramble: { agent: { 'identity.json': '{}' } } } },
  })
  chmodSync(join(root, 'var/lib/bramble/agent'), 0o700)
  chmodSync(join(root, 'var/lib/bramble/agent/identity.json'), 0o600)
  const { machine, live, agent } = sourcesFor(root)
  t.equal(live, undefined)
  t.same([await machine.hostname(), machine.uptimeMs()], ['pi-07', 100_500])
  t.match(await machine.commandLineFile('/boot/cmdline.txt'), { path: '/boot/cmdline.txt', content: /^quiet/ })
  t.equal(await machine.commandLineFile('/boot/none.txt'), undefined)
  t.same([agent.dataPath, agent.dockerSocket], [defaults.dataDir, defaults.dockerSocket])
  t.same(await agent.dataDirectory(), { path: defaults.dataDir, mode: 0o700 })
  t.same(await agent.identityFile(), { path: `${defaults.dataDir}/identity.json`, mode: 0o600 })
  t.equal(await agent.isWritable(), undefined, 'the rights of a copy prove nothing')
  t.same(await agent.heldPods(), [])
  t.equal(await sourcesFor(testFolder(t)).agent.dataDirectory(), undefined)
})

test('folders that are named are those, also beside a saved machine', async (t) => {
  const folder = testFolder(t, { 'identity.json': '{}' })
  const { agent } = sourcesFor('/saved', { dataDir: folder, dockerSocket: '/run/other.sock' })
  t.same([agent.dataPath, agent.dockerSocket], [folder, '/run/other.sock'])
  t.match(await agent.identityFile(), { path: join(folder, 'identity.json') })
})

test('the space of each filesystem is read once, and none where there is nothing', async (t) => {
  const folder = testFolder(t, { a: {}, b: {} })
  const space = await sourcesFor('/', { dataDir: folder }).live?.space([
    join(folder, 'a'),
    join(folder, 'none'),
    join(folder, 'b'),
  ])
  t.equal(space?.length, 1)
  t.equal(space?.[0]?.path, join(folder, 'a'))
  const { availableBytes = 0, capacityBytes = 0 } = space?.[0] ?? {}
  t.ok(capacityBytes > 2 ** 20 && availableBytes <= capacityBytes)
})

test('the health of an agent is what its endpoint answers, or nothing', async (t) => {
  const server = createHttpServer((request, response) => {
    response.writeHead(request.url === '/healthz' ? 503 : 404).end('loop pods hangs')
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { live } = sourcesFor('/', { dataDir: testFolder(t) })
  t.same(await live?.agentHealth(port), { status: 503, text: 'loop pods hangs' })
  t.equal(await live?.agentHealth(1), undefined, 'nothing listens there')
  t.equal(await live?.agentPid(), undefined, 'no agent runs on this folder')
})
