import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd, type TestDockerd, whyNoDockerd, whyNotWithoutMemory } from './support/dockerd.ts'
import { container, image, isReady, listening, nodeOnDocker, statusOf } from './support/pods.ts'

const script = listening[2] ?? ''

test('what pods may use, on a real engine', { skip: whyNoDockerd() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('requests and limits are in the kernel’s own books', async (t) => {
    const node = nodeOnDocker(t, dockerd, { podPidsLimit: 57 })
    const resources = { limits: { cpu: '500m', memory: '64Mi' }, requests: { cpu: '250m', memory: '32Mi' } }
    const idle = container('idle', script)
    const pod = aPod({ name: 'held', uid: 'uid-held', containers: [container('main', script, { resources }), idle] })
    node.want(pod)
    const status = await node.until('held', isReady)
    const main = await booksOf(dockerd, statusOf(status, 'main')?.containerID)
    t.same(await main.cgroup(['cpu.max', 'cpu/cpu.cfs_quota_us']), '50000')
    t.same(await main.cgroup(['memory.max', 'memory/memory.limit_in_bytes']), String(64 * 2 ** 20))
    t.same(await main.cgroup(['pids.max', 'pids/pids.max']), '57')
    const swap = await main.cgroup(['memory.swap.max', 'memory/memory.memsw.limit_in_bytes']).catch(() => undefined)
    t.ok(
      [undefined, '0', String(64 * 2 ** 20)].includes(swap),
      'of swap there is none beside it, where the kernel counts it',
    )
    const shares = await main.cgroup(['cpu.weight', 'cpu/cpu.shares'])
    t.ok(['256', '10'].includes(shares ?? ''), `a quarter of a core's worth: ${shares}`)
    t.same(await main.oomScore(), '993', '1000 less a thousandth of the node’s 4Gi for each that was asked for')
    const other = await booksOf(dockerd, statusOf(status, 'idle')?.containerID)
    t.same(await other.oomScore(), '999', 'Burstable for what the other one asks')
    t.same(await other.cgroup(['memory.max', 'memory/memory.limit_in_bytes']), await main.unlimited())
  })

  t.test('who asks for nothing goes first', async (t) => {
    const node = nodeOnDocker(t, dockerd)
    node.want(aPod({ name: 'free', uid: 'uid-free', containers: [container('main', script)] }))
    const status = await node.until('free', isReady)
    t.same(await (await booksOf(dockerd, statusOf(status, 'main')?.containerID)).oomScore(), '1000')
  })
})

test('an engine whose kernel has no memory cgroup', { skip: whyNotWithoutMemory() }, async (t) => {
  const dockerd = await startDockerd(t, { withoutMemoryCgroup: true })
  await dockerd.importImage(image)
  const node = nodeOnDocker(t, dockerd)
  t.match(await node.runtime.info(), { memoryLimit: false, pidsLimit: true })
  const resources = { limits: { memory: '16Mi' } }
  const eats = 'head -c 48m /dev/zero | tail -c 40m > /dev/null; echo done; '
  node.want(aPod({ name: 'runs', uid: 'uid-runs', containers: [container('main', eats + script, { resources })] }))
  await node.until('runs', isReady)
  t.match(node.eventTexts().join('\n'), /MemoryLimitNotEnforced: .* append cgroup_enable=memory cgroup_memory=1 to/)
})

/** What the kernel reports of a container's first process. */
async function booksOf({ docker }: TestDockerd, containerID = '') {
  const { State } = await docker.getContainer(containerID.slice('docker://'.length)).inspect()
  const rows = (await readFile(`/proc/${State.Pid}/cgroup`, 'utf8')).split('\n')
  const folderOf = (controller: string) => {
    const row = rows.find((one) => one.split(':')[1]?.split(',').includes(controller))
    return row === undefined ? undefined : row.split(':').slice(2).join(':')
  }
  return {
    oomScore: async () => (await readFile(`/proc/${State.Pid}/oom_score_adj`, 'utf8')).trim(),
    /** The same number in the second version of cgroups, and in the first. */
    async cgroup([unified = '', split = '']: readonly string[]) {
      const [controller = '', file = ''] = split.split('/')
      const folder = folderOf(controller)
      const path =
        folder === undefined
          ? `/sys/fs/cgroup${folderOf('')}/${unified}`
          : `/sys/fs/cgroup/${controller}${folder}/${file}`
      const text = await readFile(path, 'utf8')
      return text.split(/\s/)[0]
    },
    unlimited: async () => (folderOf('memory') === undefined ? 'max' : '9223372036854771712'),
  }
}
