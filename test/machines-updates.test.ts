/** The agent of a machine is updated on trial: a good release is committed, bad ones are taken back, and no container notices. */
import { createHash, createPrivateKey } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { signFile } from '../daemon/updates/minisign.ts'
import { readReleaseArchive, releaseArchive } from '../daemon/updates/release-archive.ts'
import type { VersionFile } from '../daemon/updates/update-folder.ts'
import { bootMachine, type Machine } from './support/machine.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { podManifest } from './support/manifests.ts'
import { hubOn, install, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const releaseScript = fileURLToPath(new URL('../scripts/release.js', import.meta.url))
const checkpoint = '/var/lib/bramble/agent/desired.json'

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
  const before = await containers()
  t.equal(before.split('\n').length, 2, 'the pod and its sandbox')
  await quickTrials(machine)

  const publisher = await publisherIn(testFolder(t), machine, packages.laterAgent)
  const status = () => machine.run('bramble-update status')
  const shown = () => hub.kubectl('get', 'node', 'pi-01', '-o', 'jsonpath={.status.nodeInfo.kubeletVersion}')
  const ends = async (version: string, outcome: string) =>
    eventually(`the trial of ${version} ends`, async () => (await status()).includes(`${version}: ${outcome}`), {
      withinMs: 240_000,
    })

  await t.test('without a signature of the publisher nothing is installed', async (t) => {
    const folder = await publisher.publish({ version: '99.0.0', isSigned: false })
    const { code, stderr } = await machine.tryRun(`bramble-update install ${folder}`)
    t.equal(code, 1)
    t.match(stderr, /signed by 0 of the keys of this machine, and needs 1/)
    t.match(await status(), /on trial +none/)
  })

  await t.test('a good release is committed when the controller has seen it', async (t) => {
    t.match(await machine.run(`bramble-update install ${await publisher.publish({ version: '99.0.0' })}`), /on trial/)
    await ends('99.0.0', 'Committed')
    t.match(await shown(), /-bramble\.99\.0\.0$/)
    t.match(await status(), /committed +99\.0\.0/)
    t.equal(await containers(), before)
  })

  await t.test('a release that ends at once is taken back after three starts', async (t) => {
    await machine.run(`bramble-update install ${await publisher.publish({ version: '99.1.0', program: 'exit 1' })}`)
    await ends('99.1.0', 'RolledBack')
    await backAgain(t, '99.1.0', /3 starts failed/)
  })

  await t.test(
    'a release that ends with a status after which systemd does not start it again is taken back',
    async (t) => {
      await machine.run(`bramble-update install ${await publisher.publish({ version: '99.2.0', program: 'exit 78' })}`)
      await ends('99.2.0', 'RolledBack')
      await backAgain(t, '99.2.0', /status 78/)
    },
  )

  await t.test(
    'a release that runs, and that the controller does not see, is taken back with the state before',
    async (t) => {
      const program = `echo '{"format":9999}' >${checkpoint}; cd "$(dirname "$0")"; exec /usr/lib/bramble-runtime/22/node deaf.cjs`
      await machine.run(`bramble-update install ${await publisher.publish({ version: '99.3.0', program })}`)
      t.match(await machine.run(`cat ${checkpoint}`), /9999/)
      await ends('99.3.0', 'RolledBack')
      await backAgain(t, '99.3.0', /no lease of it/)
    },
  )

  await t.test('where the start cannot be prepared, the committed version runs', async (t) => {
    // As a disk that hangs: what prepares the start waits for the lock, and gives up.
    await machine.run('systemd-run --quiet --unit=holder flock /run/bramble/agent-update.lock sleep infinity')
    await machine.run('systemctl restart bramble-agent', { withinMs: 120_000 })
    await machine.run('systemctl stop holder')
    t.match(await machine.journal('bramble-agent'), /Another program holds/)
    const program = await machine.run('tr "\\0" " " </proc/$(systemctl show -p MainPID --value bramble-agent)/cmdline')
    t.match(program, /updates\/agent\/versions\/99\.0\.0-/)
    t.equal(await containers(), before)
  })

  await t.test('a power cut in a trial costs an attempt, and the trial goes on', async (t) => {
    const program = 'exec "$(dirname "$0")/agent" "$@"'
    const folder = await publisher.publish({ version: '99.4.0', program })
    await machine.run(`bramble-update install ${folder} --no-restart`)
    await machine.run('systemctl restart bramble-agent', { withinMs: 120_000 })
    t.match(await status(), /99\.4\.0, 2 starts left/)
    await machine.cutPower()
    await machine.powerOn()
    t.match(await status(), /99\.4\.0, 1 starts left|99\.4\.0: Committed/)
    await ends('99.4.0', 'Committed')
    await hub.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=90s')
  })

  await t.test('a newer package replaces the committed version; a purge removes all versions', async (t) => {
    const folder = '/var/lib/bramble/updates'
    t.not(await machine.run(`ls ${folder}/agent/versions`), '')
    await machine.run('apt-get purge --yes bramble-agent 2>&1', { withinMs: 120_000 })
    t.not((await machine.tryRun(`ls -d ${folder}`)).code, 0)
  })

  async function backAgain(t: Test, version: string, reason: RegExp): Promise<void> {
    t.match(await status(), reason)
    await eventually(
      'the committed version is Ready',
      async () => /99\.0\.0$/.test(await shown()) && isNodeReady(hub, 'pi-01'),
      {
        withinMs: 120_000,
      },
    )
    t.equal(await containers(), before, 'no container was touched')
    t.notMatch(await machine.run(`cat ${checkpoint}`), /9999/)
    t.match(await hub.kubectl('get', 'pod', 'web'), /1\/1 +Running +0 /)
    const again = await machine.tryRun(`bramble-update install /var/tmp/releases/${version}`)
    t.match(again.stderr, /was rejected on this machine/)
  }
})

async function quickTrials(machine: Machine): Promise<void> {
  const judge = '/usr/bin/bramble-update judge --trial-seconds 15 --deaf-seconds 60'
  await machine.write(
    '/etc/systemd/system/bramble-agent-trial.service.d/quick.conf',
    `[Service]\nExecStart=\nExecStart=${judge}\n`,
  )
  await machine.write('/etc/systemd/system/bramble-agent.service.d/quick.conf', '[Service]\nRestartSec=1s\n')
  await machine.run('systemctl daemon-reload')
}

type Published = { readonly version: string; readonly isSigned?: boolean; readonly program?: string }

/** Keys of a publisher on the machine, and a function that makes a release there: its program is that of the package, or this script. */
async function publisherIn(folder: string, machine: Machine, agentPackage: string) {
  const release = (...args: readonly string[]) =>
    commandOrThrow(process.execPath, [releaseScript, ...args, '--out', folder])
  await release('keys')
  const key = join(folder, (await readdir(folder)).find((name) => name.endsWith('.pem')) ?? '')
  await machine.copyIn(join(folder, 'release-keys.json'), '/etc/bramble/release-keys.json')
  await release('release', agentPackage, '--key', key)
  const manifest = JSON.parse(await readFile(join(folder, 'release.json'), 'utf8')) as { sequence: number }
  const tar = (await readdir(folder)).find((name) => name.endsWith('.tar')) ?? ''
  const files = readReleaseArchive(await readFile(join(folder, tar)))
  let { sequence } = manifest

  const publish = async ({ version, isSigned = true, program }: Published): Promise<string> => {
    const made = join(folder, version)
    await mkdir(made, { recursive: true })
    const named = files.map((one) => (one.path === 'bramble-agent.mjs' ? withVersion(one, version) : one))
    const archive = releaseArchive(program === undefined ? named : withProgram(named, program))
    const sha256 = createHash('sha256').update(archive).digest('hex')
    const archives = { amd64: { size: archive.length, sha256 } }
    const written = Buffer.from(JSON.stringify({ ...manifest, version, sequence: ++sequence, archives }))
    await writeFile(join(made, 'release.json'), written)
    const signature = signFile(written, createPrivateKey(await readFile(key)), version)
    if (isSigned) await writeFile(join(made, 'release.json.a.minisig'), signature)
    await writeFile(join(made, `bramble-agent_${version}_amd64.tar`), archive)
    await machine.copyIn(made, `/var/tmp/releases/${version}`)
    return `/var/tmp/releases/${version}`
  }
  return { publish }
}

/** The package has version 99.0.0. */
function withVersion(bundle: VersionFile, version: string): VersionFile {
  return { ...bundle, content: Buffer.from(Buffer.from(bundle.content).toString().replaceAll('99.0.0', version)) }
}

/** The agent of the package stays as the file `agent`. */
function withProgram(files: readonly VersionFile[], program: string): readonly VersionFile[] {
  const renamed = files.map((one) => (one.path === 'bramble-agent' ? { ...one, path: 'agent' } : one))
  const script = { path: 'bramble-agent', content: Buffer.from(`#!/bin/sh\n${program}\n`), isProgram: true }
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
