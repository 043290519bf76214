/**
 * A machine with 20 pods that write and sync numbered records on claims of the class local-path. Its power is pulled while they write and while
 * it boots, and its disk keeps what was flushed and a part of the rest. Without its controller it starts all of them again with each record that
 * was synced. `scripts/power-pulls.sh` does it a hundred times.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { holdAnnotation } from '../agent/health/boot-loop-hold.ts'
import { seededRandom } from '../daemon/testing/seeded-random.ts'
import { startController, temporaryFolder } from './support/fleet.ts'
import { flashMachine, type Machine } from './support/machine.ts'
import { machineNetwork } from './support/machine-network.ts'
import { installOnDisk, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const pulls = Number(process.env['BRAMBLE_TEST_PULLS'] ?? 2)
const seed = Number(process.env['BRAMBLE_TEST_SEED'] ?? 4711)
const image = 'test/busybox:1'
const names = Array.from({ length: 20 }, (_, at) => `writer-${at}`)
/** They have a token of their ServiceAccount, which only a controller makes: they run before the first pull. The others may never have run. */
const withToken = names.slice(0, 5)
const dataDir = '/var/lib/bramble/agent'
const pool = `${dataDir}/volumes`
const recordBytes = 16

/** Notes a record in /acks when it is synced. /acks is a folder of the host: it loses nothing. */
const write = `cd /data
size=0
if [ -e records ]; then size=$(stat -c %s records) || exit 1; else echo empty >>/acks/$NAME; fi
n=$((size / ${recordBytes}))
truncate -s $((n * ${recordBytes})) records
while n=$((n + 1)); do
  printf '%015d\\n' $n >>records && sync records && echo $n >>/acks/$NAME || exit 1
  usleep 200000
done`

test('power is pulled from a machine whose pods write', { timeout: 300_000 + pulls * 150_000 }, async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const folder = await temporaryFolder(t)
  const acks = join(folder, 'acks')
  await mkdir(acks)
  const machine = await flashMachine(t, {
    ...{ name: 'pi-01', network, binds: [[acks, '/root/acks']] },
    lossyDisk: { mebibytes: 4096, seed },
    prepare: (disk) => installOnDisk(disk, packages.agent),
  })
  await startWriters()
  const moments = seededRandom(seed)
  const startS: number[] = []
  const wrong: string[] = []
  let records = 0

  for (let pull = 1; pull <= pulls; pull++) {
    const when = pull === 1 ? await whileTheyAreMade() : pull % 4 === 3 ? await whileItBoots() : await whileAllWrite()
    const before = await acknowledged(acks)
    await machine.cutPower()
    await forgetLater(acks, before)
    const { synced, problems } = await foundOnDisk(machine, before)
    wrong.push(...problems.map((problem) => `pull ${pull}: ${problem}`))
    records = synced
    t.comment(`pull ${pull}, ${when}: ${synced} records were synced, ${problems.join(', ') || 'none is lost'}`)
  }
  await whileAllWrite()
  const range = `${Math.min(...startS).toFixed(1)} to ${Math.max(...startS).toFixed(1)} s`
  t.comment(
    `after ${pulls} pulls (seed ${seed}): ${records} records, ${wrong.length} problems; without a controller all ${names.length} pods wrote ${range} after power on`,
  )
  t.same(wrong, [], 'no record that was synced is lost, and no claim is empty')

  /** Until the node has all that it needs to run them alone. */
  async function startWriters(): Promise<void> {
    const controller = await startController(t, { dataDir: join(folder, 'controller'), address: network.hostAddress })
    await machine.powerOn()
    await machine.importImage(image)
    await machine.run('sync')
    await machine.run(`bramble-agent ${(await controller.joinLine()).join(' ')} --no-run`)
    await controller.nodesReady('pi-01')
    await controller.kubectlWith(manifests(), 'create', '-f', '-')
    await eventually('the checkpoint has all pods', async () => {
      const text = await readFile(machine.disk(`${dataDir}/desired.json`), 'utf8')
      const { desired } = JSON.parse(text.slice(text.indexOf('\n') + 1))
      return desired.pods.length === names.length && !/"refusal"/.test(JSON.stringify(desired.claims))
    })
    await allWrite(new Map(), withToken)
    controller.program.kill('SIGKILL')
    await controller.program.ended
  }

  async function whileTheyAreMade(): Promise<string> {
    await delay(moments() * 2_000)
    const running = [...(await acknowledged(acks)).values()].filter((last) => last > 0).length
    return `when ${running} of ${names.length} pods wrote for the first time`
  }

  async function allWrite(than: Acknowledged, all = names): Promise<void> {
    let fewest: readonly string[] = all
    await eventually(
      'all pods write',
      async () => {
        const now = await acknowledged(acks)
        fewest = all.filter((name) => (now.get(name) ?? 0) <= (than.get(name) ?? 0))
        return fewest.length === 0
      },
      { withinMs: 120_000, everyMs: 100 },
    ).catch(async (error) => {
      const log = await machine.journal('bramble-agent')
      throw new Error(`${fewest.join()} do not write:\n${log.split('\n').slice(-60).join('\n')}`, { cause: error })
    })
  }

  async function whileAllWrite(): Promise<string> {
    const [before, beganMs] = [await acknowledged(acks), performance.now()]
    await machine.powerOn()
    await allWrite(before)
    const seconds = (performance.now() - beganMs) / 1000
    startS.push(seconds)
    const waitMs = moments() * 2_000
    await delay(waitMs)
    return `${Math.round(waitMs)} ms after all ${names.length} pods wrote, ${seconds.toFixed(1)} s after power on`
  }

  async function whileItBoots(): Promise<string> {
    const waitMs = moments() * 6_000
    const booting = machine.powerOn().catch(() => undefined)
    await eventually('it is on', () => machine.initPid !== undefined)
    await delay(waitMs)
    // It boots meanwhile, or has; then nothing is left to wait for.
    void booting
    return `${Math.round(waitMs)} ms after power on`
  }
})

/** By pod: the number of the last record that it synced. */
type Acknowledged = ReadonlyMap<string, number>

async function acknowledged(folder: string): Promise<Acknowledged> {
  const found = await Promise.all(
    names.map(async (name) => {
      const lines = (await readFile(join(folder, name), 'utf8').catch(() => '')).split('\n')
      if (lines.lastIndexOf('empty') > 0) throw new Error(`${name} found its claim empty`)
      return [name, Number(lines.findLast((line) => /^\d+$/.test(line)) ?? 0)] as const
    }),
  )
  return new Map(found)
}

/** Between the cut of its disk and its end the machine has synced records that are not on the disk. */
async function forgetLater(folder: string, before: Acknowledged): Promise<void> {
  for (const [name, last] of before) await writeFile(join(folder, name), last === 0 ? '' : `${last}\n`)
}

async function foundOnDisk(machine: Machine, before: Acknowledged) {
  const folders = await readdir(machine.disk(pool)).catch(() => [])
  const problems: string[] = []
  let synced = 0
  for (const [name, last] of before) {
    const claim = folders.find((folder) => folder.startsWith(`default_${name}_`))
    const text = claim && (await readFile(machine.disk(`${pool}/${claim}/records`), 'utf8').catch(() => undefined))
    if (text === undefined || claim === undefined) {
      if (last > 0) problems.push(`the claim of ${name} ${claim === undefined ? 'has no folder' : 'is empty'}`)
      continue
    }
    const found = text.split('\n').slice(0, -1)
    const bad = found.findIndex((line, at) => line !== String(at + 1).padStart(recordBytes - 1, '0'))
    const whole = bad === -1 ? found.length : bad
    if (whole < last) problems.push(`${name} synced ${last} records and has ${whole}`)
    synced += last
  }
  return { synced, problems }
}

/** The pods are not held back after the fourth pull in a row that follows their start. */
function manifests(): string {
  const items = names.flatMap((name) => {
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    }
    const container = {
      name: 'main',
      ...{ image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', write], env: [{ name: 'NAME', value: name }] },
      volumeMounts: [
        { name: 'data', mountPath: '/data' },
        { name: 'acks', mountPath: '/acks' },
      ],
    }
    const volumes = [
      { name: 'data', persistentVolumeClaim: { claimName: name } },
      { name: 'acks', hostPath: { path: '/root/acks' } },
    ]
    const automountServiceAccountToken = withToken.includes(name)
    const spec = { automountServiceAccountToken, containers: [container], volumes, terminationGracePeriodSeconds: 1 }
    const metadata = { name, annotations: { [holdAnnotation]: 'false' } }
    return [claim, { apiVersion: 'v1', kind: 'Pod', metadata, spec }]
  })
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}
