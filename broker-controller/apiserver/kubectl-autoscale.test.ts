import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { objectReference } from '../store/references.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'nginx:1.27' }] } },
  },
}
const newer = {
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'newer' },
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
    maxReplicas: 4,
    metrics: [
      { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '64Mi' } } },
    ],
    behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
  },
}

test('kubectl autoscales, and shows autoscalers of both versions', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const ok = async (args: readonly string[], input = '') => {
    const ran = await api.kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout
  }
  await ok(['create', '-f', '-'], JSON.stringify(deployment))
  const autoscale = ['autoscale', 'deployment', 'web', '--min=2', '--max=5', '--cpu-percent=70']
  t.equal(await ok(autoscale), 'horizontalpodautoscaler.autoscaling/web autoscaled\n')
  t.equal(await ok(['get', 'hpa', 'web', '-o', 'jsonpath={.apiVersion}']), 'autoscaling/v2')
  const field = 'jsonpath={.spec.targetCPUUtilizationPercentage}'
  t.equal(await ok(['get', 'horizontalpodautoscalers.v1.autoscaling', 'web', '-o', field]), '70')
  t.match(
    await ok(['get', 'hpa']),
    /NAME +REFERENCE +TARGETS +MINPODS +MAXPODS +REPLICAS +AGE\nweb +Deployment\/web +cpu: <unknown>\/70% +2 +5 +0 +/,
  )
  t.match(await ok(['get', 'all']), /horizontalpodautoscaler.autoscaling\/web/)
  await ok(['apply', '-f', '-'], JSON.stringify(newer))
  await ok(['apply', '--server-side', '-f', '-'], JSON.stringify({ ...newer, metadata: { name: 'third' } }))
  t.match(await ok(['explain', 'hpa.spec.behavior.scaleDown']), /VERSION: +v2[\s\S]*FIELD: scaleDown <HPAScalingRules>/)

  const web = await api.store.get('horizontalpodautoscalers', { namespace: 'default', name: 'web' })
  if (web === undefined) return t.fail('no autoscaler')
  const current = { averageUtilization: 35, averageValue: '70m' }
  await api.store.updateStatus('horizontalpodautoscalers', {
    ...web,
    status: {
      currentReplicas: 2,
      desiredReplicas: 3,
      currentMetrics: [{ type: 'Resource', resource: { name: 'cpu', current } }],
      conditions: [{ type: 'AbleToScale', status: 'True', reason: 'ReadyForNewScale', message: 'it fits' }],
    },
  })
  const events = eventRecorder({ store: api.store, clock: systemClock })
  const what = { type: 'Normal', reason: 'SuccessfulRescale', message: 'New size: 3; reason: x' } as const
  await events.record({ object: objectReference(web), component: 'horizontal-pod-autoscaler', ...what })
  t.match(await ok(['get', 'hpa', 'web']), /cpu: 35%\/70% +2 +5 +2 +/)
  const described = await ok(['describe', 'hpa', 'web'])
  t.match(described, /Reference: +Deployment\/web\n/)
  t.match(described, /resource cpu on pods +\(as a percentage of request\): +35% \(70m\) \/ 70%\n/)
  t.match(described, /Min replicas: +2\nMax replicas: +5\nDeployment pods: +2 current \/ 3 desired\n/)
  t.match(described, /AbleToScale +True +ReadyForNewScale +it fits\n/)
  t.match(described, /Normal +SuccessfulRescale .*horizontal-pod-autoscaler +New size: 3; reason: x/)
  t.match(
    await ok(['describe', 'hpa', 'newer']),
    /resource memory on pods: +<unknown> \/ 64Mi[\s\S]*Scale Down:\n +Stabilization Window: 60 seconds/,
  )
  await ok(['patch', 'hpa', 'newer', '-p', '{"spec":{"maxReplicas":6}}'])
  await ok(['delete', 'hpa', '--all'])
})
