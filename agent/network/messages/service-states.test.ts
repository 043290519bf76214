import { test } from 'tap'
import { aService } from '../testing/services.ts'
import { areSameServices, noServices, serviceKey, withShard } from './service-states.ts'

const [web, db] = [aService({ name: 'web' }), aService({ name: 'db' })]
const first = withShard(noServices, [], [web, db], true)

test('a shard replaces what it had before, and names what is other', async (t) => {
  t.same([...first.services.keys()], ['shop/web', 'shop/db'])
  t.same(first.changed, ['shop/web', 'shop/db'])
  const other = aService({ name: 'db', clusterIPs: ['10.96.0.8'] })
  const second = withShard(first, ['shop/web', 'shop/db'], [other], true)
  t.same([...second.services], [['shop/db', other]])
  t.same(second.changed, ['shop/web', 'shop/db'])
  const third = withShard(second, ['shop/db', 'shop/never'], [{ ...other }], true)
  t.same(third.changed, [], 'an equal Service is not a change, nor is one that was not there')
  t.equal(third.services.get('shop/db'), other)
  t.equal(first.services.size, 2)
})

test('readers are notified of changes, and when all shards are there', async (t) => {
  const same = withShard(first, ['shop/web', 'shop/db'], [web, db], true)
  t.equal(areSameServices(first, same), true)
  t.equal(areSameServices({ ...first, isComplete: false }, same), false)
  t.equal(areSameServices(noServices, first), false)
  t.equal(areSameServices(undefined, same), false)
  t.equal(areSameServices(same, undefined), false)
  t.equal(areSameServices(undefined, undefined), true)
  t.equal(serviceKey(web), 'shop/web')
})
