/** Deployments with the real kubectl, controller, agents and engine. */
import tap, { test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { systemClock } from '../daemon/clock.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

tap.setTimeout(900_000)

/** It answers with its version, and is ready a moment after its start. */
function manifest(version: string): string {
  const script = `mkdir /www; sleep 1; echo ${version} > /www/index.html; exec httpd -f -p 8080 -h /www`
  const main = {
    name: 'main',
    image,
    command: ['sh', '-c', script],
    readinessProbe: { httpGet: { port: 8080, path: '/' }, periodSeconds: 1, timeoutSeconds: 30 },
    // Who has its address gets answers until that address is known to be leaving: kubectl takes seconds for that on a busy machine.
    lifecycle: { preStop: { exec: { command: ['sleep', '15'] } } },
  }
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: { containers: [main], terminationGracePeriodSeconds: 25 },
  }
  const strategy = { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
  const spec = { replicas: 3, selector: { matchLabels: { app: 'web' } }, strategy, template }
  return JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec })
}

test('a rolling update with probes serves without a failed request', { skip: whyNoDockerd() }, async (t) => {
  const fleet = await joinedFleet(t, { names: ['pi-1', 'pi-2'] })
  const { kubectl, kubectlWith } = fleet.controller
  await fleet.startReady()
  const pods = async () => (JSON.parse(await kubectl('get', 'pods', '-o', 'json')) as { items: readonly Pod[] }).items
  const isServing = ({ metadata, status }: Pod) =>
    metadata.deletionTimestamp === undefined &&
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
  await kubectlWith(manifest('one'), 'apply', '-f', '-')
  await kubectl('rollout', 'status', 'deployment/web', '--timeout=120s')

  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const answers: string[] = []
  const failures: string[] = []
  let least = Infinity
  let most = 0
  let serving: readonly Pod[] = (await pods()).filter(isServing)
  const readPods = async () => {
    while (!stop.signal.aborted) {
      const present = await pods()
      serving = present.filter(isServing)
      least = Math.min(least, serving.length)
      most = Math.max(most, present.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length)
    }
  }
  const request = async () => {
    for (let turn = 0; !stop.signal.aborted; turn++) {
      const pod = serving[turn % serving.length]
      const answer = fetch(`http://${pod?.status?.podIP}:8080/`, { signal: AbortSignal.timeout(30_000) })
      await answer.then(
        async (got) => void answers.push((await got.text()).trim()),
        (error: unknown) => void failures.push(`${pod?.metadata.name}: ${error}`),
      )
      await systemClock.sleep(20, stop.signal)
    }
  }
  const clients = Promise.all([readPods(), request()])
  await kubectlWith(manifest('two'), 'apply', '-f', '-')
  await kubectl('rollout', 'status', 'deployment/web', '--timeout=180s')
  const seen = answers.length
  await eventually(
    'only the new version answers',
    async () => new Set(answers.slice(-20)).size === 1 && answers.length > seen + 20,
  )
  stop.abort()
  await clients
  t.same(failures, [])
  t.ok(least >= 3, `at least ${least} of 3 pods served`)
  t.ok(most <= 4, `at most ${most} pods at a time`)
  t.same([...new Set(answers)].sort(), ['one', 'two'])
  t.equal(answers.at(-1), 'two')
  t.comment(`${answers.length} requests`)

  await kubectl('rollout', 'undo', 'deployment/web')
  fleet.controller.program.kill('SIGKILL')
  await fleet.controller.program.ended
  const { kubectl: again } = await fleet.controllerAgain()
  await again('rollout', 'status', 'deployment/web', '--timeout=180s')
  await eventually(
    'three pods are left',
    async () => {
      const { items } = JSON.parse(await again('get', 'pods', '-o', 'json')) as { items: readonly Pod[] }
      return items.length === 3 && items.every(isServing)
    },
    { withinMs: 90_000 },
  )
  t.match(await again('get', 'deployment', 'web'), /web +3\/3 +3 +3 /)
  t.match(await again('get', 'rs'), /web-\S+ +3 +3 +3 /)
})
