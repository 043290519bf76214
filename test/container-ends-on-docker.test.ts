import { readdir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import type { PodStatus } from '../api/pod.ts'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, whyNoDockerd } from './support/dockerd.ts'
import { container, eventually, image, isReady, nodeOnDocker, statusOf } from './support/pods.ts'
import { testVolumes } from './support/volumes.ts'

/** The kernel's number for it. */
const tmpfs = 0x01021994
const endOf = (status: PodStatus, name = 'main') => statusOf(status, name)?.state?.terminated
const hasEnded = ({ phase }: PodStatus) => phase === 'Failed' || phase === 'Succeeded'

test('how containers end on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('the termination message of a container is reported with its end', async (t) => {
    const { store, memoryDirectory } = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: store })
    const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' }
    const containers = [
      container('standard', 'printf "no route to broker" > /dev/termination-log; exit 1'),
      container('unprivileged', 'printf mine > /tmp/why; exit 0', {
        terminationMessagePath: '/tmp/why',
        securityContext: { runAsUser: 65534, readOnlyRootFilesystem: true },
      }),
      container(
        'long',
        'head -c 9000 /dev/zero | tr "\\0" x > /dev/termination-log; printf end >> /dev/termination-log',
      ),
      container(
        'log',
        'exec 2>&1; i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; echo broken >&2; exit 3',
        fallback,
      ),
      container('flood', 'head -c 300000 /dev/zero | tr "\\0" y; printf end; exit 3', fallback),
      container('well', 'echo all is well', fallback),
      container('silent', 'echo logged; exit 1'),
    ]
    node.want(aPod({ name: 'ends', uid: 'uid-ends', restartPolicy: 'Never', containers }))
    const status = await node.until('ends', hasEnded)
    t.equal(endOf(status, 'standard')?.message, 'no route to broker')
    t.equal(endOf(status, 'unprivileged')?.message, 'mine', 'for every user')
    t.equal(endOf(status, 'long')?.message, 'x'.repeat(1755), 'its part of 12 KiB')
    const log = endOf(status, 'log')?.message?.trimEnd().split('\n') ?? []
    t.same([log.length, log.includes('broken'), log.includes('line 199')], [80, true, true])
    t.match([endOf(status, 'flood')?.message?.length, endOf(status, 'flood')?.message], [1755, /^y+$/])
    t.same([endOf(status, 'well')?.message, endOf(status, 'silent')?.message], [undefined, undefined])
    await eventually(async () => (await readdir(join(memoryDirectory, 'messages'))).length === 0)
    t.same(node.status('ends')?.containerStatuses, status.containerStatuses, 'still reported when the files are gone')
  })

  t.test('it is reported for the last one when the next one runs, by an agent that starts again too', async (t) => {
    const { store, memoryDirectory } = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: store })
    const script =
      '[ -s /state/x ] && exec sleep 1000; echo x > /state/x; printf "first try" > /dev/termination-log; exit 5'
    const mounted = { volumeMounts: [{ name: 's', mountPath: '/state' }] }
    const pod = aPod({
      name: 'again',
      uid: 'uid-again',
      containers: [container('main', script, mounted)],
      spec: { terminationGracePeriodSeconds: 0, volumes: [{ name: 's', emptyDir: {} }] },
    })
    const isSecond = (one: PodStatus) => isReady(one) && statusOf(one, 'main')?.restartCount === 1
    node.want(pod)
    const status = await node.until('again', isSecond)
    const lastState = { terminated: { exitCode: 5, message: 'first try' } }
    t.match(statusOf(status, 'main'), { restartCount: 1, lastState })
    await node.stop()
    const next = nodeOnDocker(t, dockerd, { volumes: store, epoch: 'two' })
    next.want(pod)
    t.match(statusOf(await next.until('again', isSecond), 'main'), { restartCount: 1, lastState })
    t.same(await readdir(join(memoryDirectory, 'messages/uid-again/main')), ['0', '1'])
  })

  t.test('a container that fills the termination message stops no other', async (t) => {
    const { store, memoryDirectory } = await testVolumes(t)
    const node = nodeOnDocker(t, dockerd, { volumes: store })
    const greedy = container('main', 'cat /dev/zero > /dev/termination-log; exec sleep 1000')
    node.want(
      aPod({ name: 'greedy', uid: 'uid-greedy', containers: [greedy], spec: { terminationGracePeriodSeconds: 0 } }),
    )
    await node.until('greedy', isReady)
    await eventually(async () => {
      const { type, bavail } = await statfs(join(memoryDirectory, 'messages'))
      return type === tmpfs && bavail === 0
    })
    const modest = container('main', 'exec sleep 1000')
    node.want(
      aPod({ name: 'greedy', uid: 'uid-greedy', containers: [greedy], spec: { terminationGracePeriodSeconds: 0 } }),
      aPod({ name: 'modest', uid: 'uid-modest', containers: [modest], spec: { terminationGracePeriodSeconds: 0 } }),
    )
    t.ok(isReady(await node.until('modest', isReady)))
  })

  t.test('a container that needs more memory than it may is killed, and that is why', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const resources = { limits: { memory: '16Mi' } }
    // A busy engine misses the kill of a container that has only just begun.
    const script = 'until [ -e /tmp/go ]; do sleep 0.1; done; exec tail -c 200m /dev/zero'
    const containers = [container('main', script, { resources })]
    node.want(aPod({ name: 'hungry', uid: 'uid-hungry', restartPolicy: 'Never', containers }))
    const id = statusOf(await node.until('hungry', isReady), 'main')?.containerID?.slice('docker://'.length) ?? ''
    await node.runtime.exec(id, ['touch', '/tmp/go'], 20_000)
    const status = await node.until('hungry', hasEnded)
    t.match([status.phase, endOf(status)], ['Failed', { reason: 'OOMKilled', exitCode: 137 }])
  })

  t.test('when only a child of it is killed the container goes on; at its end the kill is not forgotten', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    const resources = { limits: { memory: '16Mi' } }
    const script = 'tail -c 200m /dev/zero; echo $? > /tmp/child; until [ -e /tmp/go ]; do sleep 0.1; done; exit 0'
    const containers = [container('main', script, { resources })]
    node.want(aPod({ name: 'parent', uid: 'uid-parent', restartPolicy: 'Never', containers }))
    const running = await node.until('parent', isReady)
    const id = statusOf(running, 'main')?.containerID?.slice('docker://'.length) ?? ''
    const outputOf = async (script: string) => (await node.runtime.exec(id, ['sh', '-c', script], 20_000)).output
    await eventually(async () => (await outputOf('cat /tmp/child 2>/dev/null')) === '137\n')
    t.match(statusOf(node.status('parent') ?? {}, 'main'), { ready: true, restartCount: 0 })
    await outputOf('touch /tmp/go')
    t.match(endOf(await node.until('parent', hasEnded)), { reason: 'OOMKilled', exitCode: 0 })
  })
})
