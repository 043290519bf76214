import { test } from 'tap'
import type { PodSpec } from '../../api/pod.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { ensurePriorityClasses } from '../assembly/bootstrap-objects.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

const aManifest = (name: string, spec: Partial<PodSpec>) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: { containers: [{ name: 'main', image: 'busybox:1.36' }], ...spec },
  })

test('kubectl shows what a pod waits for and how much it matters', {
  skip: whyNoKubectl(),
}, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl, store } = api
  await ensurePriorityClasses(store)
  const applied = (name: string, spec: Partial<PodSpec>) =>
    kubectl(['apply', '-f', '-'], { input: aManifest(name, spec) })

  const classes = await kubectl(['get', 'pc'])
  t.match(classes.stdout, /NAME +VALUE +GLOBAL-DEFAULT +AGE +PREEMPTIONPOLICY\n/)
  t.match(classes.stdout, /system-cluster-critical +2000000000 +false +\S+ +PreemptLowerPriority/)
  t.match((await applied('lost', { priorityClassName: 'none' })).stderr, 'no PriorityClass with name none was found')

  const gated = { priorityClassName: 'system-node-critical', schedulingGates: [{ name: 'example.com/quota' }] }
  t.equal((await applied('web', gated)).code, 0)
  t.match((await kubectl(['get', 'pod', 'web'])).stdout, /web +0\/1 +SchedulingGated/)
  t.match(
    (await kubectl(['describe', 'pod', 'web'])).stdout,
    /Priority: +2000001000\nPriority Class Name: +system-node-critical/,
  )
  t.equal((await applied('web', { ...gated, nodeSelector: { ssd: 'yes' } })).code, 0, 'it may become choosier')
  const other = { ...gated, schedulingGates: [{ name: 'example.com/other' }] }
  t.match((await applied('web', other)).stderr, /only deletion is allowed, but found new scheduling gate/)
  const opened = [{ op: 'remove', path: '/spec/schedulingGates' }]
  t.equal((await kubectl(['patch', 'pod', 'web', '--type=json', '-p', JSON.stringify(opened)])).code, 0)
  t.match((await applied('web', { nodeSelector: { ssd: 'no' } })).stderr, /may not change fields/)

  const labelSelector = { matchLabels: { app: 'spread' } }
  const constraint = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector }
  t.equal((await applied('spread', { topologySpreadConstraints: [constraint] })).code, 0)
  t.match((await kubectl(['describe', 'pod', 'spread'])).stdout, /zone:DoNotSchedule when max skew 1 is exceeded/)
  const wrong = await applied('wrong', { topologySpreadConstraints: [{ ...constraint, maxSkew: 0 }] })
  t.match(wrong.stderr, /spec.topologySpreadConstraints\[0\].maxSkew: Invalid value: 0: must be greater than zero/)
})
