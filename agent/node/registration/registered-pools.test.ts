import { test } from 'tap'
import { type Pool, poolsAnnotation } from '../../../api/storage/pools.ts'
import { cell } from '../../../daemon/cell.ts'
import { registeredPools } from './registered-pools.ts'

const pool: Pool = { id: 'a', path: '/var/lib/bramble/agent/volumes', default: true }
const other: Pool = { id: 'b', path: '/mnt/disk', name: 'disk' }

function opened() {
  const found = cell<readonly Pool[] | undefined>(undefined)
  let changes = 0
  const pools = registeredPools(found, async () => [pool])
  pools.onChange(() => {
    changes += 1
  })
  return { found, pools, changes: () => changes }
}

test('pools are looked for where none are reported yet, and registered again when others are there', async (t) => {
  const { found, pools, changes } = opened()
  t.same(await pools.annotations(), { [poolsAnnotation]: JSON.stringify([pool]) })
  found.set([{ ...pool }])
  t.equal(changes(), 0, 'the first look finds what is registered')
  found.set([pool, other])
  t.equal(changes(), 1)
  t.same(await pools.annotations(), { [poolsAnnotation]: JSON.stringify([pool, other]) })
  found.set([pool])
  t.equal(changes(), 2)
})

test('what is found before the first registration is registered with it', async (t) => {
  const { found, pools, changes } = opened()
  found.set([other])
  t.equal(changes(), 0)
  t.same(await pools.annotations(), { [poolsAnnotation]: JSON.stringify([other]) })
})
