/** A busy container makes its Deployment grow: the kernel's figures, the report of the node, the autoscaler and another container. */
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const labels = { app: 'busy' }
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'busy', namespace: 'default' },
  spec: {
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: 'main',
            image,
            command: ['sh', '-c', 'while :; do :; done'],
            resources: { requests: { cpu: '50m' }, limits: { cpu: '150m' } },
          },
        ],
      },
    },
  },
}

test('a busy container scales its Deployment from one to two', { skip: whyNoDockerd() }, async (t) => {
  const { controller, startReady } = await joinedFleet(t, { controller: { horizontalPodAutoscalerSyncPeriod: '5s' } })
  await startReady()
  await controller.kubectlWith(JSON.stringify(deployment), 'apply', '-f', '-')
  await controller.kubectl('autoscale', 'deployment', 'busy', '--min=1', '--max=2', '--cpu-percent=80')
  const patience = { withinMs: 180_000, everyMs: 1000 }
  const ready = async () => controller.kubectl('get', 'deployment', 'busy', '-o', 'jsonpath={.status.readyReplicas}')
  await eventually('two pods are ready', async () => (await ready()) === '2', patience)
  // On a machine that others use, too, a container gets less now and then, and a report of its node may come late.
  await eventually('what the containers use is shown', async () => {
    const row = await controller.kubectl('get', 'hpa', 'busy')
    return Number(/cpu: (\d+)%\/80%/.exec(row)?.[1]) > 80
  })
  const described = await eventually('the autoscaler has the usage of the containers', async () => {
    const text = await controller.kubectl('describe', 'hpa', 'busy')
    return /ScalingActive +True +ValidMetricFound/.test(text) && text
  })
  t.match(
    described,
    /SuccessfulRescale .*New size: 2; reason: cpu resource utilization \(percentage of request\) above target/,
  )
})
