import { test } from 'tap'
import { poolAnnotation, poolsAnnotation } from '../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { volumeWorld } from '../../testing/volume-world.ts'

const [pool, other] = ['1', '2'].map((digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`)
const gibibyte = 2 ** 30

async function aWorld(t: Parameters<typeof volumeWorld>[0]) {
  const world = volumeWorld(t)
  world.start()
  const annotations = { [poolsAnnotation]: JSON.stringify([{ id: pool, path: '/pool' }]) }
  const { metadata, ...node } = aNode({ name: 'pi-1', annotations })
  const { uid: _uid, resourceVersion: _version, ...own } = metadata
  await world.store.create('nodes', { ...node, metadata: own })
  const inPool = (name: string, id = pool) => {
    const { metadata: given, spec } = aStoredVolume(name, {
      metadata: {
        annotations: { [volumeAnnotations.provisionedBy]: 'bramble.dev/local-path', [poolAnnotation]: id ?? '' },
      },
      spec: {
        local: { path: `/pool/${name}` },
        hostPath: undefined,
        claimRef: claimRefTo(name),
        capacity: { storage: '10Gi' },
      },
    })
    const { resourceVersion: _, ...kept } = given
    return world.store.create('persistentvolumes', {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: kept, spec, status: { phase: 'Bound' } },
    })
  }
  return {
    ...{ world, inPool },
    async report(freePart: number, volumes: Readonly<Record<string, number>>) {
      const [capacityBytes, availableBytes] = [100 * gibibyte, Math.round(freePart * 100 * gibibyte)]
      world.storage.receive('pi-1', {
        ...{ done: [], refused: [], pools: [{ id: pool ?? '', capacityBytes, availableBytes }] },
        volumes: Object.entries(volumes).map(([name, used]) => ({
          uid: `uid-${name}`,
          usedBytes: Math.round(used * gibibyte),
        })),
      })
      await world.settle()
    },
    fills: async (name: string) => (await world.events(name)).filter((text) => text.includes('FillingUp')),
  }
}

test('a claim whose volume fills up has an Event at each level, once', async (t) => {
  const { inPool, report, fills } = await aWorld(t)
  await inPool('db')
  await report(0.5, { db: 7 })
  t.same(await fills('db'), [])
  for (const used of [8.2, 8.3, 7.9]) await report(0.5, { db: used })
  const size = 'The size is not enforced: it can fill the disk of its pool, which is 50 % full'
  t.same(await fills('db'), [`VolumeFillingUp the volume uses 82 % of the 10Gi of its claim. ${size}`])
  await report(0.5, { db: 11 })
  t.equal((await fills('db')).length, 2)
})

test('a node whose pool fills up has an Event that names the largest volumes, before pods are evicted', async (t) => {
  const { inPool, report, fills } = await aWorld(t)
  for (const name of ['a', 'b', 'c', 'd']) await inPool(name)
  await report(0.5, { a: 1, b: 2, c: 3, d: 4 })
  await report(0.19, { a: 1, b: 2, c: 3, d: 4 })
  const largest = 'default/d (4.0 GiB), default/c (3.0 GiB), default/b (2.0 GiB)'
  t.match(await fills('pi-1'), [
    `PoolFillingUp The pool ${pool} at /pool is 81 % full. The largest volumes are those of ${largest}.`,
  ])
})

test('a node is not believed about volumes of other pools', async (t) => {
  const { inPool, report, fills } = await aWorld(t)
  await inPool('theirs', other)
  await report(0.5, { theirs: 20 })
  t.same(await fills('theirs'), [])
})
