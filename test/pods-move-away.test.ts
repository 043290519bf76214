/** Three machines, one dies: the pod that was placed there is asked to leave, and the one made in its stead runs elsewhere. */
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const names = ['pi-1', 'pi-2', 'pi-3']

test('a killed node loses its pod, and its successor lands on another', { skip: whyNoDockerd() }, async (t) => {
  const { controller, startReady } = await joinedFleet(t, {
    names,
    controller: { nodeMonitorPeriod: '1s', nodeMonitorGracePeriod: '20s', nodeConnectionLossDebounce: '1s' },
    agents: { nodeLeaseDurationSeconds: 8 },
  })
  const { kubectl, kubectlWith } = controller
  const agents = await startReady()

  const tolerations = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 2,
  }))
  const web = (name: string) => podManifest({ name, image, labels: { app: 'web' }, spec: { tolerations } })
  const homeOf = (name: string) => kubectl('get', 'pod', name, '-o', 'jsonpath={.spec.nodeName}')
  await kubectlWith(web('web-1'), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/web-1', '--timeout=80s')
  const lost = await homeOf('web-1')
  t.ok(names.includes(lost), `placed on ${lost}`)

  agents[names.indexOf(lost)]?.kill('SIGKILL')
  await kubectl('wait', '--for=condition=Ready=Unknown', `node/${lost}`, '--timeout=80s')
  await eventually('the pod is asked to leave', async () => {
    const pod = JSON.parse(await kubectl('get', 'pod', 'web-1', '-o', 'json'))
    return pod.metadata.deletionTimestamp !== undefined
  })
  const events = await kubectl(
    'get',
    'events',
    '-o',
    'jsonpath={range .items[*]}{.reason} {.involvedObject.name}{"\\n"}{end}',
  )
  t.match(events, /TaintManagerEviction web-1/)

  await kubectlWith(web('web-2'), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/web-2', '--timeout=80s')
  t.not(await homeOf('web-2'), lost)
  t.match(await kubectl('get', 'pods', '-l', 'app=web'), /web-1 .*Terminating/, 'the dead node has confirmed nothing')

  await kubectl('taint', 'node', lost, 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute')
  await kubectl('wait', '--for=delete', 'pod/web-1', '--timeout=80s')
  t.notMatch(await kubectl('get', 'pods', '-l', 'app=web'), /web-1/, 'declared out of service, it is not waited for')
})
