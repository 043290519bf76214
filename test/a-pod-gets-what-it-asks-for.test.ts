/** What kubectl asks of a pod, on real parts: to end, to be tried again, to wait, to be forgotten. */
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { podManifest } from './support/manifests.ts'
import { image, runningNames } from './support/pods.ts'
import { eventually } from './support/wait.ts'

test('what a pod asks for is what it gets', async (t) => {
  const { docker, controller, startReady } = await joinedFleet(t)
  await startReady()
  const apply = (text: string) => controller.kubectlWith(text, 'apply', '-f', '-')

  await apply(podManifest({ name: 'once', image, command: ['true'], spec: { restartPolicy: 'Never' } }))
  await controller.kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/once', '--timeout=80s')

  await apply(podManifest({ name: 'crash', image, command: ['sh', '-c', 'exit 3'] }))
  await eventually('it crashes, is started again, and waits', async () =>
    /CrashLoopBackOff/.test(await controller.kubectl('get', 'pod', 'crash')),
  )

  await apply(podManifest({ name: 'huge', image, container: { resources: { requests: { memory: '100Ti' } } } }))
  const pending = await eventually('the scheduler reports why it fits nowhere', async () => {
    const events = await controller.kubectl('get', 'events', '--field-selector=involvedObject.name=huge')
    return events.includes('FailedScheduling') && events
  })
  t.match(pending, /0\/1 nodes are available: 1 Insufficient memory/)

  await controller.kubectl('cordon', 'pi-1')
  await apply(podManifest({ name: 'later', image }))
  await eventually('a cordoned node takes no pods', async () =>
    /were unschedulable/.test(await controller.kubectl('describe', 'pod', 'later')),
  )
  await controller.kubectl('uncordon', 'pi-1')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/later', '--timeout=80s')

  await controller.kubectl('delete', 'pod', 'later', '--force', '--grace-period=0')
  t.equal((await controller.tryKubectl('get', 'pod', 'later')).code, 1, 'by force it is forgotten at once')
  await eventually('and soon ended, though no client waits for it', async () =>
    (await runningNames(docker)).every((name) => !name.includes('_later_')),
  )

  const refused = await controller.tryKubectl('run', 'no-image', '--image=not/here:1', '--image-pull-policy=Never')
  t.equal(refused.code, 0, refused.stderr)
  await eventually('a missing image is named', async () =>
    /ErrImageNeverPull/.test(await controller.kubectl('get', 'pod', 'no-image')),
  )
  await controller.kubectl('delete', 'pods', '--all', '--grace-period=1', '--timeout=80s')
  t.same(await runningNames(docker), [], 'nothing is left over')
})
