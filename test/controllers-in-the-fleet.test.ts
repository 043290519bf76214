/** A controller that runs as a Deployment in the fleet, with the account of its pods: it elects a leader, watches and writes. */
import { test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { nodeOfThisMachine } from './support/node-pods.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const token = '/var/run/secrets/kubernetes.io/serviceaccount/token'

function keeper(): string {
  const rule = (apiGroups: readonly string[], resources: readonly string[], verbs: readonly string[]) => ({
    apiGroups,
    resources,
    verbs,
  })
  const role = 'rbac.authorization.k8s.io'
  const named = (name: string) => ({ name, namespace: 'shop' })
  const { volumes, ...container } = nodeOfThisMachine('in-cluster-controller.mjs', '$HOSTNAME')
  const main = { name: 'main', ...container }
  const labels = { app: 'keeper' }
  const pod = { serviceAccountName: 'keeper', terminationGracePeriodSeconds: 1, volumes, containers: [main] }
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: named('keeper') },
    {
      apiVersion: `${role}/v1`,
      kind: 'Role',
      metadata: named('keeper'),
      rules: [
        rule(['apps'], ['deployments'], ['list', 'watch']),
        rule([''], ['configmaps'], ['create', 'update', 'delete']),
        rule(['coordination.k8s.io'], ['leases'], ['get', 'create', 'update']),
      ],
    },
    {
      apiVersion: `${role}/v1`,
      kind: 'RoleBinding',
      metadata: named('keeper'),
      roleRef: { apiGroup: role, kind: 'Role', name: 'keeper' },
      subjects: [{ kind: 'ServiceAccount', ...named('keeper') }],
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: named('keeper'),
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
    },
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

test('a controller in the fleet elects a leader, is followed by another, and outlives its tokens', {
  skip: whyNoDockerd(),
}, async (t) => {
  const fleet = await joinedFleet(t, { isReachable: true })
  const { controller } = fleet
  const [agent] = await fleet.startReady()
  const kubectl = (...args: readonly string[]) => controller.kubectl('-n', 'shop', ...args)
  await controller.kubectlWith(keeper(), 'create', '-f', '-')
  await kubectl('rollout', 'status', 'deployment/keeper', '--timeout=85s')
  const kept = (name: string) => eventually(`${name} is kept`, () => keptBy(controller, name))
  const scale = (replicas: number) =>
    kubectl('create', 'deployment', `web-${replicas}`, `--image=${image}`, `--replicas=${replicas}`)

  await scale(0)
  const first = await kept('web-0')
  t.match(first, { replicas: '0' })
  const outputs = async () => {
    const names = (await podsOf(controller)).map(({ metadata }) => metadata.name ?? '')
    return Promise.all(names.map((name) => kubectl('logs', name)))
  }
  t.equal((await outputs()).filter((output) => output.includes('leads')).length, 1, 'one of the two leads')

  await kubectl('delete', 'pod', first.keeper)
  await scale(1)
  const second = await kept('web-1')
  t.not(second.keeper, first.keeper, 'another pod leads')
  await eventually('it keeps what there was', async () => (await keptBy(controller, 'web-0'))?.keeper === second.keeper)

  // Their tokens are signed by a key that ends: only new ones are valid then.
  await kubectl('rollout', 'status', 'deployment/keeper', '--timeout=85s')
  const before = await podsOf(controller)
  const tokens = () =>
    Promise.all(before.map(({ metadata }) => kubectl('exec', metadata.name ?? '', '--', 'cat', token)))
  const old = await tokens()
  const key = (step: string) => controller.command('service-account-key', step, '--data-dir', controller.dataDir)
  t.match(await key('rotate'), { code: 0 })
  agent.kill('SIGKILL')
  await agent.ended
  await fleet.startAgent()
  await eventually('the agent has renewed the tokens of both pods', async () => {
    const now = await tokens()
    return now.every((one, index) => one !== old[index])
  })
  t.match(await key('finish'), { code: 0 })
  await scale(2)
  t.match(await kept('web-2'), { replicas: '2', keeper: second.keeper }, 'the leader goes on')
  t.same((await podsOf(controller)).map(containersOf), before.map(containersOf), 'in the same containers')
  await kubectl('delete', 'deployment', 'web-0')
  await eventually('its ConfigMap is deleted', async () => (await keptBy(controller, 'web-0')) === undefined)
})

async function podsOf({ kubectl }: Controller): Promise<readonly Pod[]> {
  return JSON.parse(await kubectl('get', 'pods', '-n', 'shop', '-l', 'app=keeper', '-o', 'json')).items
}

function containersOf({ metadata, status }: Pod) {
  return [metadata.name, status?.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount])]
}

type Kept = { readonly replicas: string; readonly keeper: string }

async function keptBy({ tryKubectl }: Controller, name: string): Promise<Kept | undefined> {
  const { code, stdout } = await tryKubectl('get', 'configmap', `kept-${name}`, '-n', 'shop', '-o', 'json')
  return code === 0 ? JSON.parse(stdout).data : undefined
}
