/** What comes to a pod while it lives: an ephemeral container, and readiness gates that others set. */
import { test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image, outputOf } from './support/pods.ts'
import { eventually as within } from './support/wait.ts'

const eventually: typeof within = (what, look) => within(what, look, { withinMs: 60_000 })

test('kubectl debug adds a container that sees its target’s processes; gates hold a pod’s readiness', {
  skip: whyNoDockerd(),
}, async (t) => {
  const { docker, controller, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, kubectlWith } = controller
  const podIn = async (name: string): Promise<Pod> => JSON.parse(await kubectl('get', 'pod', name, '-o', 'json'))

  await kubectlWith(podManifest({ name: 'web', image, command: ['sleep', '98765'] }), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=60s')
  const { uid = '' } = (await podIn('web')).metadata
  const debug = (name: string, ...script: readonly string[]) =>
    kubectl('debug', 'web', `--image=${image}`, '--image-pull-policy=Never', `--container=${name}`, ...script)

  await debug('look', '--target=main', '--', 'sh', '-c', 'ps; echo done')
  const stateOf = async (name: string) =>
    (await podIn('web')).status?.ephemeralContainerStatuses?.find((one) => one.name === name)
  await eventually('it runs to its end', async () => (await stateOf('look'))?.state?.terminated?.exitCode === 0)
  t.match(await outputOf(docker, uid, 'look'), /1 +(root|0) .*sleep 98765[\s\S]*done/, 'it sees what it looks at')

  await debug('stay', '--', 'sleep', '100000')
  await eventually('one that stays runs', async () => (await stateOf('stay'))?.state?.running !== undefined)
  const { status } = await podIn('web')
  t.match(status, {
    phase: 'Running',
    containerStatuses: [{ ready: true, restartCount: 0 }],
    ephemeralContainerStatuses: [
      { name: 'look', ready: false, restartCount: 0 },
      { name: 'stay', ready: false, restartCount: 0 },
    ],
  })
  t.equal(status?.ephemeralContainerStatuses?.[0]?.restartCount, 0, 'what has ended is not started again')

  const label = [`io.kubernetes.pod.uid=${uid}`, 'io.kubernetes.container.name=stay']
  const [staying] = await docker.docker.listContainers({ filters: { label } })
  await docker.docker.getContainer(staying?.Id ?? '').remove({ force: true })
  await eventually(
    'one that was removed by hand has ended',
    async () => (await stateOf('stay'))?.state?.terminated?.exitCode === 137,
  )
  t.match((await podIn('web')).status, { phase: 'Running', containerStatuses: [{ ready: true, restartCount: 0 }] })
  t.same(await docker.docker.listContainers({ all: true, filters: { label } }), [], 'and is not run again')

  // Not with patch: it has no such subresource until kubectl 1.32.
  const debugged = JSON.parse(await kubectl('get', 'pod', 'web', '-o', 'json'))
  // Without a version: the agent reports meanwhile.
  const metadata = { ...debugged.metadata, resourceVersion: undefined }
  const without = JSON.stringify({ ...debugged, metadata, spec: { ...debugged.spec, ephemeralContainers: [] } })
  const path = '/api/v1/namespaces/default/pods/web/ephemeralcontainers'
  const removing = kubectlWith(without, 'replace', '--raw', path, '-f', '-')
  await t.rejects(removing, /existing ephemeral containers "look" may not be removed/)

  const readinessGates = [{ conditionType: 'example.com/registered' }]
  await kubectlWith(podManifest({ name: 'gated', image, spec: { readinessGates } }), 'apply', '-f', '-')
  const ready = async () => (await podIn('gated')).status?.conditions?.find(({ type }) => type === 'Ready')
  await eventually('its containers are ready', async () => (await ready())?.reason === 'ReadinessGatesNotReady')
  t.match(await kubectl('get', 'pod', 'gated', '-o', 'wide'), /0\/1\s*$/m)
  const condition = { type: 'example.com/registered', status: 'True' }
  const patch = JSON.stringify({ status: { conditions: [condition] } })
  await kubectl('patch', 'pod', 'gated', '--subresource=status', '--type=strategic', '-p', patch)
  await kubectl('wait', '--for=condition=Ready', 'pod/gated', '--timeout=60s')
  t.match(await kubectl('get', 'pod', 'gated', '-o', 'wide'), /1\/1\s*$/m)
})
