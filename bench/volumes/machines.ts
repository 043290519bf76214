/** Measures claims on machines: until their pods run, what agents need for them, and moves. `--help` prints the usage. */
import { execFile } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Pod } from '../../api/pod.ts'
import type { FleetVolumes } from '../../api/storage/fleet-volumes.ts'
import type { PersistentVolume } from '../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../api/storage/persistent-volume-claim.ts'
import { readKubeconfig } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { startDockerd } from '../../test/support/dockerd.ts'
import { type Controller, joinFleet, startAgent, startController } from '../../test/support/fleet.ts'
import { writtenBytes } from '../api/api-server.ts'
import { median } from '../figures/median.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/volumes/machines.js',
  text: `Measures on two agents, with a dockerd of their own: from the request for a claim and its pod until the pod runs, beside a pod without a claim;
the memory of an agent whose pods have claims beside one whose pods have none; what is written for a change of one claim; and how fast a volume
is moved, beside "cp -a". Prints a table. Needs root, docker.io, busybox-static and bundles (npm run build).`,
  options: {
    starts: { value: 'N', help: 'pods of each kind, one after the other', range: [1, 1_000], default: '20' },
    claims: { value: 'N', help: 'claims of the agent whose memory is measured', range: [1, 100], default: '20' },
    changes: { value: 'N', help: 'changes of one claim', range: [1, 1_000], default: '20' },
    mib: { value: 'MIB', help: 'size of the volume that is moved', range: [1, 100_000], default: '512' },
  },
})
const image = 'test/busybox:1'
const mib = 2 ** 20
const fileBytes = 4 * mib
const nodes = ['pi-1', 'pi-2'] as const
const core = '/api/v1/namespaces/default'
const rows: (readonly [string, string])[] = []
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

try {
  const folder = await mkdtemp(join(tmpdir(), 'bvol-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const dockerd = await startDockerd(ending)
  await dockerd.importImage(image, ['sleep', '100000'])
  const controller = await startController(ending, { dataDir: join(folder, 'controller') })
  const api = apiClient({ ...(await readKubeconfig(controller.kubeconfig)), deadlineMs: 60_000 })
  const pids: number[] = []
  for (const name of nodes) {
    const dataDir = join(folder, name)
    await joinFleet(controller, name, dataDir)
    pids.push((await startAgent(ending, { dataDir, dockerSocket: dockerd.socket })).pid)
  }
  await controller.nodesReady(...nodes)
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${(loadavg()[0] ?? 0).toFixed(1)}\n`)
  await starting(api)
  await resting(api, pids)
  await changing(api, [controller.program.pid, pids[1] ?? 0])
  await moving(api, controller, folder)
  console.log(['| | |', '| --- | --- |', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n'))
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
}

/** With a claim of the same name where it has one. */
async function runPod(api: ApiClient, name: string, node: string | undefined, hasClaim: boolean): Promise<void> {
  const volumes = hasClaim ? [{ name: 'data', persistentVolumeClaim: { claimName: name } }] : []
  const volumeMounts = hasClaim ? [{ name: 'data', mountPath: '/data' }] : []
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', volumeMounts }
  const nodeSelector = node === undefined ? {} : { 'kubernetes.io/hostname': node }
  const spec = { nodeSelector, terminationGracePeriodSeconds: 0, containers: [container], volumes }
  if (hasClaim) {
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec: claim }
    await expectMade(api.post(`${core}/persistentvolumeclaims`, body))
  }
  await expectMade(api.post(`${core}/pods`, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }))
  for (;;) {
    const { body } = await api.get(`${core}/pods/${name}`)
    if ((body as Pod).status?.phase === 'Running') return
    await delay(10)
  }
}

async function expectMade(answer: ReturnType<ApiClient['post']>): Promise<void> {
  const { status, body } = await answer
  if (status >= 300) throw new Error(`An object was refused: ${JSON.stringify(body)}`)
}

async function starting(api: ApiClient): Promise<void> {
  for (const hasClaim of [false, true]) {
    const kind = hasClaim ? 'claimed' : 'bare'
    await runPod(api, `${kind}-warm`, undefined, hasClaim)
    const took: number[] = []
    for (let at = 0; at < values.starts; at++) {
      const beganMs = performance.now()
      await runPod(api, `${kind}-${at}`, undefined, hasClaim)
      took.push(performance.now() - beganMs)
    }
    const names = Array.from({ length: values.starts }, (_, at) => `${kind}-${at}`)
    for (const name of [...names, `${kind}-warm`]) await api.delete(`${core}/pods/${name}`)
    const times = `${median(took).toFixed(0)} ms, longest ${Math.max(...took).toFixed(0)} ms`
    rows.push([hasClaim ? 'a claim and its pod, until it runs' : 'a pod without a claim, until it runs', times])
  }
}

/** The first agent has as many pods without claims. */
async function resting(api: ApiClient, pids: readonly number[]): Promise<void> {
  const names = Array.from({ length: values.claims }, (_, at) => `rest-${at}`)
  for (const name of names) await runPod(api, `${name}-bare`, nodes[0], false)
  for (const name of names) await runPod(api, name, nodes[1], true)
  await delay(60_000)
  const [bare, claimed] = await Promise.all(pids.map(memoryOf))
  rows.push([`memory of an agent with ${values.claims} pods without claims`, bare ?? ''])
  rows.push([`memory of an agent with ${values.claims} pods with a claim each`, claimed ?? ''])
}

async function memoryOf(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const [resident = '?', anonymous = '?'] = ['VmRSS', 'RssAnon'].map((field) => {
    const [, kib] = RegExp(`^${field}:\\s*(\\d+)`, 'm').exec(status) ?? []
    return ((Number(kib) * 1024) / 1e6).toFixed(1)
  })
  return `${resident} MB, ${anonymous} of it anonymous`
}

/** Each larger than the one before, as its owner would write it. */
async function changing(api: ApiClient, [controller = 0, agent = 0]: readonly number[]): Promise<void> {
  const path = `${core}/persistentvolumeclaims/rest-0`
  const sizeOf = (body: unknown) => (body as PersistentVolumeClaim).status?.capacity?.['storage']
  const before = [await writtenBytes(controller), await writtenBytes(agent)]
  for (let at = 2; at < values.changes + 2; at++) {
    await api.patch(path, { spec: { resources: { requests: { storage: `${at}Gi` } } } })
    while (String(sizeOf((await api.get(path)).body)) !== `${at}Gi`) await delay(20)
    await delay(1_000)
  }
  await delay(5_000)
  const after = [await writtenBytes(controller), await writtenBytes(agent)]
  const each = after.map((bytes, at) => `${((bytes - (before[at] ?? 0)) / values.changes / 1024).toFixed(1)} KiB`)
  rows.push(['written by the controller for a change of one claim', each[0] ?? ''])
  rows.push(['written by the agent for it', each[1] ?? ''])
}

async function moving(api: ApiClient, controller: Controller, folder: string): Promise<void> {
  const { body } = await api.get(`${core}/persistentvolumeclaims/rest-0`)
  const name = (body as PersistentVolumeClaim).spec?.volumeName ?? ''
  const volume = (await api.get(`/api/v1/persistentvolumes/${name}`)).body as PersistentVolume
  const data = volume.spec?.local?.path ?? ''
  await fill(data)
  await api.delete(`${core}/pods/rest-0`)
  const copied = await timed(() => shell(`cp -a "$1" "$2" && sync -f "$2"`, data, join(folder, 'copy')))
  const claim = 'default/rest-0'
  const samples: { readonly atMs: number; readonly phase: string; readonly bytes: number }[] = []
  const stop = new AbortController()
  const sampling = (async () => {
    while (!stop.signal.aborted) {
      const { volumes } = (await api.get('/fleet/volumes')).body as FleetVolumes
      const { move } = volumes.find((one) => one.claim === claim) ?? {}
      if (move !== undefined) samples.push({ atMs: performance.now(), phase: move.phase, bytes: move.copiedBytes ?? 0 })
      await delay(50)
    }
  })()
  const move = ['move', 'rest-0', '--to', nodes[0], '--rate', '100Gi', '--kubeconfig', controller.kubeconfig]
  let answer = ''
  const took = await timed(async () => {
    const { code, stdout, stderr } = await controller.command('volumes', ...move)
    answer = code === 0 ? '' : `${stdout}${stderr}`
  })
  stop.abort()
  await sampling
  if (answer !== '') throw new Error(`The move failed: ${answer}`)
  const first = samples.find(({ bytes }) => bytes > 0)
  const whole = samples.reduce((most, one) => (one.bytes > most.bytes ? one : most), { atMs: 0, phase: '', bytes: 0 })
  const copySeconds = (whole.atMs - (first?.atMs ?? 0)) / 1000
  const copyRate = (whole.bytes - (first?.bytes ?? 0)) / mib / copySeconds
  rows.push([
    `cp -a and sync of ${values.mib} MiB`,
    `${copied.toFixed(1)} s, ${(values.mib / copied).toFixed(0)} MiB/s`,
  ])
  rows.push(['copy of a move', `${copySeconds.toFixed(1)} s, ${copyRate.toFixed(0)} MiB/s`])
  rows.push(['whole move: copies, comparison of both, change of place', `${took.toFixed(1)} s`])
}

async function fill(folder: string): Promise<void> {
  await mkdir(join(folder, 'files'), { recursive: true })
  const bytes = Buffer.alloc(fileBytes)
  for (let at = 0; at < Math.ceil((values.mib * mib) / fileBytes); at++)
    await writeFile(join(folder, 'files', String(at)), randomFillSync(bytes))
  await shell('sync -f "$1"', folder)
}

async function shell(script: string, ...args: readonly string[]): Promise<void> {
  await promisify(execFile)('sh', ['-euc', script, 'sh', ...args])
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now()
  await work()
  return (performance.now() - beganMs) / 1000
}
