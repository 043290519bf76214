import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { Store } from '../../store/store.ts'
import type { Attributes } from '../handlers/authorizer.ts'
import { boundPodsFor } from './object-permission.ts'

test('a request of a node reads the pods that decide about it, not all of the fleet', async (t) => {
  const store = memoryStore({ clock: fakeClock() })
  for (const [namespace, name, nodeName] of [
    ['shop', 'a', 'pi-1'],
    ['shop', 'b', 'pi-1'],
    ['shop', 'c', 'pi-2'],
    ['bank', 'd', 'pi-1'],
  ] as const) {
    await store.create('pods', aPod({ namespace, name, nodeName }))
  }
  const lists: (string | undefined)[] = []
  const recording: Pick<Store, 'get' | 'list'> = {
    get: (resource, key) => store.get(resource, key),
    list: (resource, namespace) => {
      lists.push(namespace)
      return store.list(resource, namespace)
    },
  }
  const namesFor = async (resource: string, namespace: string, name: string) => {
    const attributes: Attributes = {
      kind: 'resource',
      verb: 'get',
      group: '',
      resource,
      subresource: '',
      namespace,
      name,
      fields: new Map(),
    }
    return (await boundPodsFor('pi-1', attributes, recording)).map(({ metadata }) => metadata.name)
  }
  t.same(await namesFor('pods', 'shop', 'a'), ['a'])
  t.same(await namesFor('pods', 'shop', 'c'), [], 'it is bound to another node')
  t.same(await namesFor('pods', 'shop', 'absent'), [])
  t.same(lists, [])
  t.same(await namesFor('secrets', 'shop', 'hidden'), ['a', 'b'])
  t.same(lists, ['shop'])
  t.same(await namesFor('secrets', '', 'hidden'), [])
  t.same(await namesFor('pods', 'shop', ''), [])
  t.same(lists, ['shop'], 'what names no object is decided without pods')
})
