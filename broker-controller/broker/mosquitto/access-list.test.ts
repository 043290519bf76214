import { test } from 'tap'
import { accessList } from './access-list.ts'

test('each node has a block with its own topics, in the order of names', async (t) => {
  const blocks = accessList('system:bramble-controller', ['pi-b', 'pi-a', 'pi-b']).split('\n\n')
  t.equal(
    blocks[0],
    '# Written by bramble-controller: changes are lost.\nuser system:bramble-controller\ntopic readwrite bramble/v1/#',
  )
  t.same(blocks[1]?.split('\n'), [
    'user system:node:pi-a',
    'topic write bramble/v1/nodes/pi-a/connection',
    'topic write bramble/v1/nodes/pi-a/lease',
    'topic write bramble/v1/nodes/pi-a/status',
    'topic write bramble/v1/nodes/pi-a/events',
    'topic write bramble/v1/nodes/pi-a/stats',
    'topic write bramble/v1/nodes/pi-a/contents',
    'topic write bramble/v1/nodes/pi-a/storage',
    'topic write bramble/v1/nodes/pi-a/pods/+',
    'topic read bramble/v1/nodes/pi-a/desired',
    'topic read bramble/v1/nodes/pi-a/calls',
    'topic read bramble/v1/nodes/pi-a/policies',
    'topic read bramble/v1/nodes/pi-a/volumes',
    'topic read bramble/v1/controller',
    'topic read bramble/v1/network',
    'topic read bramble/v1/services/+',
  ])
  t.match(blocks[2], /^user system:node:pi-b\n/)
  t.equal(blocks.length, 3)
})

test('a name that would be more than one level or line of a topic gets no block', async (t) => {
  const text = accessList('c', ['a/b', '+', '#', 'a\nuser c', '', 'pi-1'])
  t.same(
    text.split('\n').filter((line) => line.startsWith('user ')),
    ['user c', 'user system:node:pi-1'],
  )
})
