/**
 * The agent of a machine is updated on trial, by its controller or from a folder, and so is the controller: a good release is committed, bad
 * ones are taken back, and no container notices.
 */
import { createHash, createPrivateKey } from 'node:crypto'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { signFile } from '../daemon/updates/minisign.ts'
import { readReleaseArchive, releaseArchive } from '../daemon/updates/release-archive.ts'
import type { VersionFile } from '../daemon/updates/update-folder.ts'
import { archivesOfRelease, writeDeltas } from '../scripts/release-deltas.ts'
import { bootMachine, type Machine } from './support/machine.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { podManifest } from './support/manifests.ts'
import { hubOn, install, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const releaseScript = fileURLToPath(new URL('../scripts/release.js', import.meta.url))
const checkpoint = '/var/lib/bramble/agent/desired.json'

const waitingUnits = 'bramble-agent-update.path bramble-agent-update.timer'

test('updates of the agent on a machine', async (t) => {
  const packages = await testPackages()
  const machine = await bootMachine(t, { name: 'pi-01' })
  await machine.importImage('test/busybox:1')
  await install(machine, packages.controller)
  const hub = await hubOn(t, machine)
  await install(machine, packages.agent)
  await machine.run(`${await hub.joinLine()} --no-run`)
  await eventually('it is Ready', () => isNodeReady(hub, 'pi-01'), { withinMs: 60_000 })
  await hub.kubectlWith(podManifest({ name: 'web', image: 'test/busybox:1' }), 'apply', '-f', '-')
  await hub.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=60s')
  const containers = async () =>
    (await machine.run("docker ps -q | xargs docker inspect -f '{{.Id}} {{.State.StartedAt}}' | sort")).trim()
  let before = await containers()
  t.equal(before.split('\n').length, 2, 'the pod and its sandbox')
  await quickTrials(machine)

  const publisher = await publisherIn(testFolder(t), machine, packages.laterAgent)
  const status = () => machine.run('bramble-update status')
  const shown = () => hub.kubectl('get', 'node', 'pi-01', '-o', 'jsonpath={.status.nodeInfo.kubeletVersion}')
  const ends = async (version: string, outcome: string) =>
    eventually(`the trial of ${version} ends`, async () => (await status()).includes(`${version}: ${outcome}`), {
      withinMs: 240_000,
    })
  const rollout = () => machine.run('bramble-controller updates status')
  const rollOut = async (version: string, folder: string) => {
    await machine.run(`bramble-controller updates add ${folder}`)
    await machine.run(`bramble-controller updates start ${version}`)
  }
  const condition = async () =>
    hub.kubectl('get', 'node', 'pi-01', '-o', `jsonpath={.status.conditions[?(@.type=="AgentUpdateFailed")]}`)

  await t.test('the package starts the units that wait for a release', async (t) => {
    t.equal(await machine.run(`systemctl is-enabled ${waitingUnits}`), 'enabled\nenabled\n')
    t.equal(await machine.run(`systemctl is-active ${waitingUnits}`), 'active\nactive\n')
    t.equal(await machine.run('systemctl show -p Result --value bramble-agent-update'), 'success\n')
  })

  await t.test('without a signature of the publisher nothing is installed', async (t) => {
    const { folder } = await publisher.publish({ version: '98.0.0', isSigned: false })
    const { code, stderr } = await machine.tryRun(`bramble-update install ${folder}`)
    t.equal(code, 1)
    t.match(stderr, /signed by 0 of the keys of this machine, and needs 1/)
    t.match(await status(), /on trial +none/)
  })

  await t.test('the controller rolls a release out, also over a power cut during the download', async (t) => {
    const { folder, size } = await publisher.publish({ version: '98.0.0', padding: 16 * 2 ** 20 })
    await rollOut('98.0.0', folder)
    const downloads = machine.disk('/var/lib/bramble/updates/agent/download')
    const downloaded = async () => {
      const path = (await readdir(downloads, { recursive: true })).find((name) => name.endsWith('.tar.part'))
      return path === undefined ? 0 : (await stat(join(downloads, path))).size
    }
    await eventually('a part of it is on disk', async () => (await downloaded()) > 2 ** 20, { everyMs: 20 })
    await machine.cutPower()
    const kept = await downloaded()
    t.ok(kept >= 2 ** 20 && kept < size, `${kept} of ${size} bytes were downloaded`)
    await machine.powerOn()
    await eventually('the pod runs again', async () => (await containers()).split('\n').length === 2)
    before = await containers()
    // Its timer starts it minutes after a boot.
    await machine.run('systemctl start bramble-agent-update', { withinMs: 120_000 })
    const spent = JSON.parse(await machine.run('cat /var/lib/bramble/updates/agent/spent.json')) as { bytes: number }
    const [range, connection] = [256 * 1024, 6000]
    t.ok(spent.bytes < size + 2 * range + (size / range + 10) * connection, `${spent.bytes} bytes in all`)
    await ends('98.0.0', 'Committed')
    t.match(await shown(), /-bramble\.98\.0\.0$/)
    t.match(await status(), /committed +98\.0\.0/)
    t.equal(await containers(), before, 'no container was touched')
    await eventually('the rollout goes on', async () => /Ring canary soaks/.test(await rollout()))
    t.match(await rollout(), /canary +1 +1 +0 +0/)
    t.match(await condition(), /AgentUpToDate/)
  })

  await t.test('a release that ends at once is taken back after three starts', async (t) => {
    const { folder } = await publisher.publish({ version: '98.1.0', program: 'exit 1' })
    await machine.run(`bramble-update install ${folder}`)
    await ends('98.1.0', 'RolledBack')
    await backAgain(t, '98.1.0', /3 starts failed/)
  })

  await t.test('a release that systemd does not start again pauses the rollout; it comes as a delta', async (t) => {
    const { folder } = await publisher.publish({ version: '98.2.0', program: 'exit 78', from: '98.0.0' })
    // What was spent before belongs to another day if the date was not known then.
    await machine.run('rm -f /var/lib/bramble/updates/agent/spent.json')
    await rollOut('98.2.0', folder)
    t.match(await machine.run('bramble-controller updates list'), /98\.2\.0 .* kB from 98\.0\.0/)
    await ends('98.2.0', 'RolledBack')
    await backAgain(t, '98.2.0', /status 78/)
    await eventually('the rollout pauses', async () => /Paused/.test(await rollout()))
    t.match(await rollout(), /1 of 1 nodes of ring canary failed with 98\.2\.0; first pi-01, which took it back/)
    t.match(await hub.kubectl('get', 'events', '-n', 'kube-system'), /AgentRolloutPaused/)
    t.match(await condition(), /"reason":"AgentRolledBack"/)
    t.equal((await machine.tryRun('test -e /var/lib/bramble/updates/agent/download')).code, 1)
    const spent = JSON.parse(await machine.run('cat /var/lib/bramble/updates/agent/spent.json')) as { bytes: number }
    t.ok(spent.bytes < 100_000, `${spent.bytes} bytes were downloaded`)
  })

  await t.test(
    'a release that runs, and that the controller does not see, is taken back with the state before',
    async (t) => {
      const program = `echo '{"format":9999}' >${checkpoint}; cd "$(dirname "$0")"; exec /usr/lib/bramble-runtime/22/node deaf.cjs`
      const { folder } = await publisher.publish({ version: '98.3.0', program })
      await machine.run(`bramble-update install ${folder}`)
      t.match(await machine.run(`cat ${checkpoint}`), /9999/)
      await ends('98.3.0', 'RolledBack')
      await backAgain(t, '98.3.0', /no lease of it/)
    },
  )

  await t.test('where the start cannot be prepared, the committed version runs', async (t) => {
    // As a disk that hangs: what prepares the start waits for the lock, and gives up.
    await machine.run('systemd-run --quiet --unit=holder flock /run/bramble/agent-update.lock sleep infinity')
    await machine.run('systemctl restart bramble-agent', { withinMs: 120_000 })
    await machine.run('systemctl stop holder')
    t.match(await machine.journal('bramble-agent'), /Another program holds/)
    const program = await machine.run('tr "\\0" " " </proc/$(systemctl show -p MainPID --value bramble-agent)/cmdline')
    t.match(program, /updates\/agent\/versions\/98\.0\.0-/)
    t.equal(await containers(), before)
  })

  await t.test('a power cut in a trial costs an attempt, and the trial goes on', async (t) => {
    const program = 'exec "$(dirname "$0")/agent" "$@"'
    const { folder } = await publisher.publish({ version: '98.4.0', program })
    await machine.run(`bramble-update install ${folder} --no-restart`)
    await machine.run('systemctl restart bramble-agent', { withinMs: 120_000 })
    t.match(await status(), /98\.4\.0, 2 starts left/)
    await machine.cutPower()
    await machine.powerOn()
    t.match(await status(), /98\.4\.0, 1 starts left|98\.4\.0: Committed/)
    await ends('98.4.0', 'Committed')
    await hub.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=90s')
    before = await containers()
  })

  await t.test('a release of the controller is tried after a backup, and taken back if it does not work', async (t) => {
    const folder = join(testFolder(t), 'controller')
    await mkdir(folder)
    const ofController = await publisherIn(folder, machine, packages.laterController, 'bramble-controller')
    const command = 'bramble-controller-update'
    const ended = async (version: string, outcome: string) =>
      eventually(
        `the trial of ${version} ends`,
        async () => (await machine.run(`${command} status`)).includes(`${version}: ${outcome}`),
        { withinMs: 240_000 },
      )
    const running = async () =>
      machine.run('tr "\\0" " " </proc/$(systemctl show -p MainPID --value bramble-controller)/cmdline')

    const unusable = await ofController.publish({ version: '98.0.0', storeFormats: [1] })
    t.match((await machine.tryRun(`${command} install ${unusable.folder}`)).stderr, /version 98\.0\.0 uses 1: install/)
    t.match(await machine.run(`${command} status`), /on trial +none/)

    const good = await ofController.publish({ version: '98.1.0' })
    await machine.run(`${command} install ${good.folder}`, { withinMs: 120_000 })
    t.match(await running(), /updates\/controller\/versions\/98\.1\.0-.*--keep-store-format/)
    await ended('98.1.0', 'Committed')
    await machine.run('test -s /var/lib/bramble/updates/controller/before-trial.backup')
    t.match(await machine.journal('bramble-controller-trial'), /of 1 nodes that were connected before, 1 are again/)

    const bad = await ofController.publish({ version: '98.2.0', program: 'exit 78' })
    await machine.run(`${command} install ${bad.folder}`, { withinMs: 120_000 })
    await ended('98.2.0', 'RolledBack')
    await eventually('the node is Ready again', () => isNodeReady(hub, 'pi-01'), { withinMs: 120_000 })
    t.match(await running(), /updates\/controller\/versions\/98\.1\.0-/)
    t.notMatch(await running(), /--keep-store-format/)
    t.equal(await containers(), before, 'no container was touched')
  })

  await t.test('a newer package replaces the committed version; a purge removes all versions and units', async (t) => {
    const folder = '/var/lib/bramble/updates'
    t.not(await machine.run(`ls ${folder}/agent/versions`), '')
    await install(machine, packages.laterAgent)
    await eventually('it runs', async () => /-bramble\.99\.0\.0$/.test(await shown()))
    t.match(await status(), /committed +99\.0\.0 \(of the package\)/)
    t.equal(await machine.run(`ls ${folder}/agent/versions`), '')
    t.equal(await machine.run(`systemctl is-active ${waitingUnits}`), 'active\nactive\n')
    t.equal(await containers(), before)
    await machine.run('apt-get purge --yes bramble-agent 2>&1', { withinMs: 120_000 })
    t.not((await machine.tryRun(`ls -d ${folder}/agent`)).code, 0)
    t.equal(await machine.run("systemctl list-units --all --plain --no-legend 'bramble-agent*'"), '')
  })

  async function backAgain(t: Test, version: string, reason: RegExp): Promise<void> {
    t.match(await status(), reason)
    await eventually(
      'the committed version is Ready',
      async () => /98\.0\.0$/.test(await shown()) && isNodeReady(hub, 'pi-01'),
      {
        withinMs: 120_000,
      },
    )
    t.equal(await containers(), before, 'no container was touched')
    t.notMatch(await machine.run(`cat ${checkpoint}`), /9999/)
    t.match(await hub.kubectl('get', 'pod', 'web'), /1\/1 +Running /)
    const again = await machine.tryRun(`bramble-update install /var/tmp/releases/${version}`)
    t.match(again.stderr, /was rejected on this machine/)
  }
})

async function quickTrials(machine: Machine): Promise<void> {
  const judge = '/usr/bin/bramble-update judge --trial-seconds 10 --deaf-seconds 45'
  await machine.write(
    '/etc/systemd/system/bramble-agent-trial.service.d/quick.conf',
    `[Service]\nExecStart=\nExecStart=${judge}\n`,
  )
  await machine.write('/etc/systemd/system/bramble-agent.service.d/quick.conf', '[Service]\nRestartSec=1s\n')
  const controllerJudge = '/usr/bin/bramble-controller-update judge --trial-seconds 10 --idle-seconds 60'
  await machine.write(
    '/etc/systemd/system/bramble-controller-trial.service.d/quick.conf',
    `[Service]\nExecStart=\nExecStart=${controllerJudge}\n`,
  )
  await machine.run('systemctl daemon-reload')
}

type Published = {
  readonly version: string
  readonly isSigned?: boolean
  readonly program?: string
  /** In place of those of the package. */
  readonly storeFormats?: readonly number[]
  /** Bytes of a file that makes its download longer. */
  readonly padding?: number
  /** A release that was published before, from which it has a delta. */
  readonly from?: string
}

/** Keys of a publisher on the machine, and a function that makes a release there: its program is that of the package, or this script. */
async function publisherIn(folder: string, machine: Machine, packagePath: string, name = 'bramble-agent') {
  const release = (...args: readonly string[]) =>
    commandOrThrow(process.execPath, [releaseScript, ...args, '--out', folder], { withinMs: 300_000 })
  await release('keys')
  const key = join(folder, (await readdir(folder)).find((name) => name.endsWith('.pem')) ?? '')
  await machine.copyIn(join(folder, 'release-keys.json'), '/etc/bramble/release-keys.json')
  await release('release', packagePath, '--key', key)
  const manifest = JSON.parse(await readFile(join(folder, 'release.json'), 'utf8')) as object
  const tar = (await readdir(folder)).find((name) => name.endsWith('.tar')) ?? ''
  const files = readReleaseArchive(await readFile(join(folder, tar)))
  // Newer than the package of the machine, older than the later one.
  let { sequence } = JSON.parse(await machine.run(`cat /usr/lib/${name}/release.json`)) as { sequence: number }

  const publish = async ({ version, isSigned = true, program, storeFormats, padding = 0, from }: Published) => {
    const made = join(folder, version)
    await mkdir(made, { recursive: true })
    const named = files.map((one) => (one.path === `${name}.mjs` ? withVersion(one, version) : one))
    const filling = { path: 'padding', content: Buffer.alloc(padding), isProgram: false }
    const archive = releaseArchive([...(program === undefined ? named : withProgram(named, name, program)), filling])
    const sha256 = createHash('sha256').update(archive).digest('hex')
    const packed = { program: name, version, arch: 'amd64', archive }
    const earlier = from === undefined ? [] : archivesOfRelease(join(folder, from))
    const deltas = from === undefined ? undefined : await writeDeltas(packed, earlier, made)
    const archives = { amd64: { size: archive.length, sha256, ...(deltas && { deltas }) } }
    const own = { version, sequence: ++sequence, archives, ...(storeFormats && { storeFormats }) }
    const written = Buffer.from(JSON.stringify({ ...manifest, ...own }))
    await writeFile(join(made, 'release.json'), written)
    const signature = signFile(written, createPrivateKey(await readFile(key)), version)
    if (isSigned) await writeFile(join(made, 'release.json.a.minisig'), signature)
    await writeFile(join(made, `${name}_${version}_amd64.tar`), archive)
    await machine.copyIn(made, `/var/tmp/releases/${version}`)
    return { folder: `/var/tmp/releases/${version}`, size: archive.length }
  }
  return { publish }
}

/** The package has version 99.0.0. */
function withVersion(bundle: VersionFile, version: string): VersionFile {
  return { ...bundle, content: Buffer.from(Buffer.from(bundle.content).toString().replaceAll('99.0.0', version)) }
}

/** The program of the package stays, without `bramble-` in its name. */
function withProgram(files: readonly VersionFile[], name: string, program: string): readonly VersionFile[] {
  const renamed = files.map((one) => (one.path === name ? { ...one, path: name.replace('bramble-', '') } : one))
  const script = { path: name, content: Buffer.from(`#!/bin/sh\n${program}\n`), isProgram: true }
  return [...renamed, script, { path: 'deaf.cjs', content: Buffer.from(deaf), isProgram: false }]
}

/** Does for systemd what the agent does, and nothing else. */
const deaf = `
const socket = require('./node_modules/unix-dgram').createSocket('unix_dgram')
const send = (text) => socket.send(Buffer.from(text), 0, text.length, process.env.NOTIFY_SOCKET)
send('READY=1')
setInterval(() => send('WATCHDOG=1'), 5000)
process.on('SIGTERM', () => process.exit(0))
`
