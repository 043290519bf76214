import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, nodeOnDocker } from './support/pods.ts'

test('pods of a RuntimeClass, on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t, { runtimes: ['mine'] })
  await dockerd.importImage(image)
  const node = nodeOnDocker(t, dockerd)
  const pod = (name: string, runtimeClassName: string) =>
    aPod({ name, uid: name, containers: [container('main', 'exec sleep 1000')], spec: { runtimeClassName } })
  const runtimeClasses = [
    { name: 'own', handler: 'mine' },
    { name: 'absent', handler: 'runsc' },
  ]
  node.publishDesired({ pods: [pod('one', 'own'), pod('two', 'absent'), pod('three', 'deleted')], runtimeClasses })
  await node.until('one', isReady)
  const runtimes = await Promise.all(
    (await node.runtime.listContainers('one')).map(async ({ id, identity }) => {
      const { HostConfig } = await dockerd.docker.getContainer(id).inspect()
      return `${identity.kind}: ${HostConfig.Runtime}`
    }),
  )
  t.same(runtimes.sort(), ['container: mine', 'sandbox: runc'])
  const failures = [
    /^FailedCreatePodSandBox: Failed to create pod sandbox: no runtime for "runsc" is configured \(add it to "runtimes" in/,
    /^FailedCreatePodSandBox: Failed to create pod sandbox: runtimeclass.node.k8s.io "deleted" not found$/,
  ]
  const areRecorded = () => failures.every((failure) => node.eventTexts().some((event) => failure.test(event)))
  await eventually(areRecorded, () => node.eventTexts().join('\n'))
})
