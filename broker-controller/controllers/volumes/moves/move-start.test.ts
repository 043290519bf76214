import { test } from 'tap'
import {
  localProvisioner,
  type Pool,
  poolAnnotation,
  poolLabel,
  poolsAnnotation,
} from '../../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../../api/storage/volume-names.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import { aStorageClass, aStoredVolume } from '../../../testing/volume-objects.ts'
import { type MoveNode, planStart } from './move-start.ts'

const [here, large, fast] = ['1', '2', '3'].map((digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`) as [
  string,
  string,
  string,
]
const report = { moves: new Map() }
const volume = aStoredVolume('pv', {
  metadata: { annotations: { [poolAnnotation]: here, [volumeAnnotations.provisionedBy]: localProvisioner } },
  spec: { local: { path: '/one/default_data_pv' }, claimRef: { namespace: 'default', name: 'data', uid: 'u' } },
})

function aMachine(name: string, pools: readonly Pool[]): MoveNode {
  const labels = Object.fromEntries(pools.map(({ id }) => [poolLabel(id), '']))
  const annotations = { [poolsAnnotation]: JSON.stringify(pools) }
  return { node: aNode({ name, labels, annotations }), report }
}

test('the copy is made in the pool of the class', (t) => {
  const source = aMachine('pi-1', [{ id: here, path: '/one' }])
  const pools = [
    { id: fast, path: '/fast', name: 'fast' },
    { id: large, path: '/large', name: 'large', default: true },
  ]
  const plan = (parameters: Record<string, string>, given: typeof pools = pools) =>
    planStart(volume, 'pi-2', {
      source,
      target: aMachine('pi-2', given),
      storageClass: aStorageClass('some', { parameters }),
    })
  t.match(plan({}), { start: { node: 'pi-2', pool: { id: large } } })
  t.match(plan({ pool: 'fast' }), { start: { node: 'pi-2', pool: { id: fast } } })
  t.same(plan({ pool: 'nvme' }), { refuse: 'node "pi-2" has no pool "nvme"' })
  const full = pools.map((pool) => ({ ...pool, full: true }))
  t.same(plan({}, full), { refuse: 'the pool at /large on node "pi-2" is full' })
  t.end()
})
