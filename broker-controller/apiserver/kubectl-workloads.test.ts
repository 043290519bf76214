import { type Test, test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { runLoops } from '../../daemon/run.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { workloadControllers } from '../controllers/workloads/workload-controllers.ts'
import type { Store } from '../store/store.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'
import { workloadNeeds } from '../testing/workload-world.ts'

/** A node that runs every pod at once, and ends those that leave. */
async function runPods(store: Store, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const pod of (await store.list('pods')).items) {
      const { name, namespace = '', deletionTimestamp } = pod.metadata
      const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' } as const
      const isRunning = pod.status?.phase === 'Running'
      const write = async () => {
        if (deletionTimestamp !== undefined) await store.delete('pods', { namespace, name })
        else if (!isRunning) {
          const bound = await store.update('pods', { ...pod, spec: { ...pod.spec, nodeName: 'pi-01' } })
          await store.updateStatus('pods', { ...bound, status: { phase: 'Running', conditions: [ready] } })
        }
      }
      await write().catch(() => undefined) // a controller wrote in between: the next turn does it
    }
    await systemClock.sleep(20, signal)
  }
}

async function opened(t: Test) {
  const log = quietLog(t)
  const api = await startApi({ log })
  const stop = new AbortController()
  const loops = [
    ...workloadControllers(workloadNeeds(api.store, systemClock, log)),
    { name: 'node', run: (signal: AbortSignal) => runPods(api.store, signal) },
  ]
  const running = runLoops(loops, stop.signal, log)
  t.teardown(async () => {
    stop.abort()
    await running
    await api.stop()
  })
  const run = async (line: string) => {
    const { code, stdout, stderr } = await api.kubectl(line.split(' '))
    if (code !== 0) throw new Error(`kubectl ${line}: ${stderr}`)
    return stdout
  }
  return { ...api, run }
}

test('kubectl creates, scales, updates, rolls back and deletes a Deployment', { skip: whyNoKubectl() }, async (t) => {
  const { run, kubectl } = await opened(t)
  t.equal(await run('create deployment web --image=nginx:1.27 --replicas=3 --port=80'), 'deployment.apps/web created\n')
  t.match(await run('rollout status deployment web --timeout=60s'), 'deployment "web" successfully rolled out')
  t.match(
    await run('get deploy -o wide'),
    /^NAME +READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR *\nweb +3\/3 +3 +3 +\S+ +nginx +nginx:1.27 +app=web\n$/,
  )
  t.match(
    await run('get rs -o wide'),
    /^NAME +DESIRED +CURRENT +READY +AGE +CONTAINERS +IMAGES +SELECTOR *\nweb-(\S+) +3 +3 +3 +\S+ +nginx +nginx:1.27 +app=web,pod-template-hash=\1\n$/,
  )
  t.equal(await run('scale deployment web --replicas=4'), 'deployment.apps/web scaled\n')
  t.equal(await run('scale deployment web --current-replicas=4 --replicas=2'), 'deployment.apps/web scaled\n')
  t.match(await run('rollout status deployment web --timeout=60s'), 'successfully rolled out')
  t.match((await kubectl(['scale', 'deploy', 'web', '--replicas=-1'])).stderr, /replicas/)
  await run('wait --for=jsonpath={.status.replicas}=2 deployment/web --timeout=60s')
  t.match(await run('get deployment web --subresource=scale'), /^NAME +DESIRED +AVAILABLE +AGE\nweb +2 +2 /)
  t.match(await run('patch deploy web --subresource=scale --type=merge -p {"spec":{"replicas":3}}'), 'patched')

  t.equal(await run('set image deployment/web nginx=nginx:1.28'), 'deployment.apps/web image updated\n')
  t.match(await run('rollout status deployment/web --timeout=60s'), 'successfully rolled out')
  t.equal(await run('set env deployment/web MODE=test'), 'deployment.apps/web env updated\n')
  const revision = '{.metadata.annotations.deployment\\.kubernetes\\.io/revision}'
  await run(`wait --for=jsonpath=${revision}=3 deployment/web --timeout=60s`)
  t.match(await run('set resources deployment/web --limits=cpu=200m,memory=64Mi'), 'resource requirements updated')
  t.match(await run('rollout status deployment/web --timeout=60s'), 'successfully rolled out')
  t.match(
    await run('rollout history deployment/web'),
    /REVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n3 +<none>\n4 +<none>\n/,
  )
  t.match(await run('rollout history deployment/web --revision=2'), 'nginx:1.28')
  t.equal(await run('rollout undo deployment/web --to-revision=1'), 'deployment.apps/web rolled back\n')
  t.match(await run('rollout status deployment/web --timeout=60s'), 'successfully rolled out')
  t.match(await run('get deploy web -o jsonpath={.spec.template.spec.containers[0].image}'), 'nginx:1.27')
  t.equal(await run('rollout pause deployment/web'), 'deployment.apps/web paused\n')
  t.match((await kubectl(['rollout', 'restart', 'deployment/web'])).stderr, 'paused')
  t.equal(await run('rollout resume deployment/web'), 'deployment.apps/web resumed\n')
  t.equal(await run('rollout restart deployment/web'), 'deployment.apps/web restarted\n')
  t.match(await run('rollout status deployment/web --timeout=60s'), 'successfully rolled out')

  t.equal(await run('expose deployment web --port=80'), 'service/web exposed\n')
  const all = await run('get all')
  for (const one of ['pod/web-', 'service/web', 'deployment.apps/web', 'replicaset.apps/web-']) t.match(all, one)
  const described = await run('describe deployment web')
  t.match(described, /Replicas: +3 desired \| 3 updated \| 3 total \| 3 available \| 0 unavailable\n/)
  t.match(described, /StrategyType: +RollingUpdate\n/)
  t.match(described, /RollingUpdateStrategy: +25% max unavailable, 25% max surge\n/)
  t.match(described, /NewReplicaSet: +web-\S+ \(3\/3 replicas created\)\n/)
  t.match(described, /ScalingReplicaSet +\S+ +deployment-controller +Scaled up replica set web-\S+ from 0 to 3/)
  t.match(await run('describe rs'), /Controlled By: +Deployment\/web\n/)
  t.match(await run('explain deployment.spec.strategy'), 'DeploymentStrategy')
  t.match(await run('delete deployment web'), 'deleted')
})

test('kubectl applies a Deployment twice, also on the server, and runs a ReplicationController', {
  skip: whyNoKubectl(),
}, async (t) => {
  const { run, kubectl } = await opened(t)
  const template = { metadata: { labels: { app: 'api' } }, spec: { containers: [{ name: 'api', image: 'api:1' }] } }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'api' },
    spec: { selector: { matchLabels: { app: 'api' } }, template },
  }
  const apply = async (object: object, ...options: readonly string[]) => {
    const { stdout, stderr } = await kubectl(['apply', '-f', '-', ...options], { input: JSON.stringify(object) })
    return `${stdout}${stderr}`
  }
  t.equal(await apply(deployment), 'deployment.apps/api created\n')
  t.equal(await apply(deployment), 'deployment.apps/api unchanged\n')
  const recreated = { ...deployment, spec: { ...deployment.spec, strategy: { type: 'Recreate' } } }
  t.equal(await apply(recreated), 'deployment.apps/api configured\n')
  t.match(await run('get deploy api -o jsonpath={.spec.strategy}'), /^\{"type":"Recreate"\}$/)
  t.match(await apply(recreated, '--server-side', '--force-conflicts'), 'serverside-applied')
  const rc = {
    apiVersion: 'v1',
    kind: 'ReplicationController',
    metadata: { name: 'old' },
    spec: { replicas: 2, template: { ...template, metadata: { labels: { app: 'old' } } } },
  }
  t.match(await apply(rc), 'replicationcontroller/old created')
  t.equal(await run('scale rc old --replicas=1'), 'replicationcontroller/old scaled\n')
  t.match(await run('get rc -o wide'), /NAME +DESIRED +CURRENT +READY +AGE +CONTAINERS +IMAGES +SELECTOR *\nold +1 /)
  t.match(await run('delete rc old'), 'deleted')
})
