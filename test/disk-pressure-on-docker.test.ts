import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd } from './support/dockerd.ts'
import { container, image, isReady } from './support/pods.ts'
import { smallDisk } from './support/small-disk.ts'
import { smallMachine, whyNoSmallMachine } from './support/small-machine.ts'

const resident = 'while :; do sleep 0.1; done'

/** Writes in the container itself, once `/tmp/go` is there: another process in it might be killed with it before it has written all. */
const filling = (write: string) => `until test -e /tmp/go; do sleep 0.1; done; ${write}; ${resident}`
const zeros = (path: string, count: number) => `dd if=/dev/zero of=${path} bs=1M count=${count}`

function writing(name: string, script = resident, sizeLimit?: string) {
  const main = container('main', script, { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] })
  const emptyDir = sizeLimit === undefined ? {} : { sizeLimit }
  return aPod({ name, containers: [main], spec: { volumes: [{ name: 'scratch', emptyDir }] } })
}

test('a machine short of disk, with a real one', { skip: whyNoSmallMachine() }, async (t) => {
  const dockerd = await startDockerd(t)
  await dockerd.importImage(image)

  t.test('who fills the disk goes, its files with it, and the node is well again', async (t) => {
    const disk = await smallDisk(t, 64, 4096)
    const node = await smallMachine(
      t,
      dockerd,
      { evictionHard: { 'nodefs.available': '20%' }, evictionPressureTransitionPeriod: '8s' },
      { dataDirectory: join(disk, 'agent') },
    )
    node.want(writing('modest'), writing('greedy', filling(zeros('/scratch/file', 50))))
    for (const name of ['modest', 'greedy']) await node.until(name, isReady)
    await node.within('modest', 'main', zeros('/scratch/file', 5))
    await node.go('greedy', 'main')
    await node.untilCondition('DiskPressure', 'True')
    const evicted = await node.evicted('greedy')
    t.match(evicted, {
      reason: 'Evicted',
      message:
        /^The node was low on resource: ephemeral-storage\. Threshold quantity: \d+(Ki|Mi)?, available: \d+(Ki|Mi)?\. /,
    })
    t.ok(node.nodeEventTexts().includes('EvictionThresholdMet: Attempting to reclaim ephemeral-storage'))
    await node.untilCondition('DiskPressure', 'False')
    t.equal(node.status('modest')?.phase, 'Running')
    t.same(await readdir(join(node.dataDirectory, 'pods')), ['uid-of-modest'])
  })

  t.test('many small files are as bad as few large ones', async (t) => {
    const disk = await smallDisk(t, 64, 1024)
    const node = await smallMachine(
      t,
      dockerd,
      { evictionHard: { 'nodefs.inodesFree': '20%' }, evictionPressureTransitionPeriod: '8s' },
      { dataDirectory: join(disk, 'agent') },
    )
    node.want(writing('few'), writing('many', filling('for i in $(seq 900); do : > /scratch/$i; done')))
    for (const name of ['few', 'many']) await node.until(name, isReady)
    await node.within('few', 'main', zeros('/scratch/file', 20))
    await node.go('many', 'main')
    t.match(await node.evicted('many'), {
      reason: 'Evicted',
      message: /^The node was low on resource: inodes\. Threshold quantity: \d+, available: \d+\. $/,
    })
    await node.untilCondition('DiskPressure', 'False')
    t.equal(node.status('few')?.phase, 'Running')
  })

  t.test('who breaks its own limits goes, however empty the disk is', async (t) => {
    const node = await smallMachine(t, dockerd, { evictionHard: {} })
    const limited = aPod({
      name: 'layer',
      containers: [
        container('main', filling(zeros('/file', 5)), { resources: { limits: { 'ephemeral-storage': '2Mi' } } }),
      ],
    })
    const write = filling(zeros('/scratch/file', 3))
    node.want(writing('volume', write, '1Mi'), limited, writing('kept', write, '10Mi'))
    for (const name of ['volume', 'layer', 'kept']) await node.until(name, isReady)
    for (const name of ['volume', 'kept', 'layer']) await node.go(name, 'main')
    const over = await node.until('volume', ({ phase }) => phase === 'Failed')
    t.match(over, { reason: 'Evicted', message: 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ' })
    t.notOk(over.conditions?.some(({ type }) => type === 'DisruptionTarget'))
    t.match(await node.until('layer', ({ phase }) => phase === 'Failed'), {
      message: 'Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ',
    })
    t.equal(node.status('kept')?.phase, 'Running')
    t.equal(node.condition('DiskPressure'), 'False')
  })
})
