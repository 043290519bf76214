import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { fileCheckpoint } from '../agent/adapters/checkpoint.ts'
import { dockerRuntime } from '../agent/adapters/docker.ts'
import { writeIdentity } from '../agent/join/identity.ts'
import type { RuntimeContainer } from '../agent/pods/runtime.ts'
import type { Pod } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueNode } from '../certs/issue.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { temporaryFolder } from './support/fleet.ts'
import { container, eventually, image, listening } from './support/pods.ts'
import { startProgram } from './support/program.ts'

const agentProgram = fileURLToPath(new URL('../agent/main.js', import.meta.url))

/** As many as fit in this time, so that a slow machine takes no longer. */
const killingMs = 25_000
const mostKills = 60
/** From before it has read its checkpoint until well after it has acted on it. */
const longestLifeMs = 1_500

test('an agent that is killed again and again', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)
  const folder = await temporaryFolder(t)
  const nodeName = 'pi-01'
  const authority = await openAuthority(join(folder, 'authority'), Date.now())
  const keys = issueNode(authority, { nodeName, nowMs: Date.now() })
  await writeIdentity(folder, {
    nodeName,
    apiUrl: 'https://127.0.0.1:1',
    mqttUrl: 'mqtts://127.0.0.1:1',
    ca: authority.certificate,
    certificate: keys.certificate,
    key: keys.key,
  })
  const runtime = dockerRuntime({ socketPath: dockerd.socket, nodeName })
  const own = () => runtime.listContainers()
  const startAgent = () =>
    startProgram(
      [
        ...[process.execPath, agentProgram, 'run', `--data-dir=${folder}`, `--docker-socket=${dockerd.socket}`],
        ...['--healthz-port=0', '--log-format=json'],
      ],
      (end) => t.teardown(end),
    )
  let version = 0
  /** What its controller last told it, as it wrote it down. */
  const want = (pods: readonly Pod[]) =>
    fileCheckpoint(join(folder, 'desired.json'), quietLog(t)).save({
      desired: { epoch: 'one', version: ++version, pods },
      endings: {},
    })

  const lasting = [
    pod('steady', [container('main', listening[2] ?? ''), container('second', listening[2] ?? '')]),
    pod('staged', [container('main', listening[2] ?? '')], [container('first', 'sleep 0.2')]),
  ]
  const crasher = pod('crasher', [container('main', 'sleep 0.2; exit 3')])
  await want(lasting)
  const first = startAgent()
  await eventually(async () => (await own()).filter(isServing(lasting)).length === 3)
  const before = (await own()).filter(isServing(lasting))
  first.kill('SIGKILL')
  await first.ended

  let visitors: readonly Pod[] = []
  let kills = 1
  for (const lastMs = performance.now() + killingMs; kills < mostKills && performance.now() < lastMs; kills++) {
    visitors = [...visitors.filter(() => Math.random() < 0.6), visitor(`visitor-${kills}`)].map(maybeLeaving)
    await want([...lasting, crasher, ...visitors])
    const agent = startAgent()
    await delay(100 + Math.random() * longestLifeMs)
    agent.kill('SIGKILL')
    await agent.ended
  }
  t.comment(`${kills} kills`)
  t.ok(kills > 5, 'it was killed often enough to say something')

  const staying = [...lasting, visitor('last')]
  await want(staying)
  const last = startAgent()
  const settled = async () => {
    const found = await own()
    const uids = new Set(found.map(({ identity }) => identity.podUID))
    return found.filter(isServing(staying)).length === 4 && uids.size === staying.length
  }
  await eventually(settled, () => JSON.stringify(last.lines.slice(-20)), 60_000)

  const after = await own()
  t.same(
    after.filter(isServing(lasting)).map(({ id, startedAt }) => [id, startedAt]),
    before.map(({ id, startedAt }) => [id, startedAt]),
    'what was well still runs, since the same moment',
  )
  t.same(
    after.filter(({ state }) => state === 'created' || state === 'dead'),
    [],
    'nothing half made is left',
  )
  const sandboxes = after.filter(({ identity }) => identity.kind === 'sandbox')
  t.same(sandboxes.map(({ identity }) => identity.podName).sort(), ['last', 'staged', 'steady'], 'one sandbox a pod')
  t.equal((await dockerd.docker.listContainers({ all: true })).length, after.length, 'and nothing beside')
  await last.stop()
})

function pod(name: string, containers: Pod['spec']['containers'], initContainers: Pod['spec']['containers'] = []): Pod {
  return aPod({ name, uid: `uid-${name}`, containers, spec: { initContainers, terminationGracePeriodSeconds: 2 } })
}

/** Some last, some end at once, some take no notice of being told to end. */
function visitor(name: string): Pod {
  const scripts = [listening[2] ?? '', 'exit 0', 'exec sleep 1000', 'sleep 0.3; exit 1']
  const script = name === 'last' ? scripts[0] : scripts[Math.floor(Math.random() * scripts.length)]
  return pod(name, [container('main', script ?? '')])
}

function maybeLeaving(pod: Pod): Pod {
  if (Math.random() < 0.7) return pod
  const metadata = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 2 }
  return { ...pod, metadata }
}

function isServing(pods: readonly Pod[]) {
  const uids = new Set(pods.map(({ metadata }) => metadata.uid))
  return ({ state, identity }: RuntimeContainer) =>
    state === 'running' &&
    identity.kind === 'container' &&
    identity.containerName !== 'first' &&
    uids.has(identity.podUID)
}
