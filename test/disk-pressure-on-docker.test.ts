import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { aPod } from '../api/testing/builders.ts'
import { startDockerd } from './support/dockerd.ts'
import { container, image, isReady } from './support/pods.ts'
import { smallDisk } from './support/small-disk.ts'
import { smallMachine, whyNoSmallMachine } from './support/small-machine.ts'

const resident = 'while :; do sleep 0.1; done'

function writing(name: string, sizeLimit?: string) {
  const main = container('main', resident, { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] })
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
    node.want(writing('modest'), writing('greedy'))
    for (const name of ['modest', 'greedy']) await node.until(name, isReady)
    await node.within('modest', 'main', 'dd if=/dev/zero of=/scratch/file bs=1M count=5')
    await node.within('greedy', 'main', 'dd if=/dev/zero of=/scratch/file bs=1M count=50')
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
    node.want(writing('few'), writing('many'))
    for (const name of ['few', 'many']) await node.until(name, isReady)
    await node.within('few', 'main', 'dd if=/dev/zero of=/scratch/file bs=1M count=20')
    await node.within('many', 'main', 'for i in $(seq 900); do : > /scratch/$i; done')
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
      containers: [container('main', resident, { resources: { limits: { 'ephemeral-storage': '2Mi' } } })],
    })
    node.want(writing('volume', '1Mi'), limited, writing('kept', '10Mi'))
    for (const name of ['volume', 'layer', 'kept']) await node.until(name, isReady)
    for (const name of ['volume', 'kept']) {
      await node.within(name, 'main', 'dd if=/dev/zero of=/scratch/file bs=1M count=3')
    }
    await node.within('layer', 'main', 'dd if=/dev/zero of=/file bs=1M count=5')
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
