import { test } from 'tap'
import { decodeFleetUpdate } from './update-decoding.ts'

const node = {
  name: 'pi-1',
  state: 'ready',
  pods: 2,
  cordoned: true,
  problems: [{ type: 'WeakWifi', message: 'Weak.' }],
}

test('an update is taken as it was sent', async (t) => {
  const sent = {
    nodes: { put: [node], gone: ['pi-2'] },
    usage: { 'pi-1': [1, null, 50.5, 3, 0.1, 1_700_000_000] },
    complete: true,
    reset: { nodes: true, usage: true, requests: false, pods: ['shop'], events: true, workloads: false },
  }
  t.same(decodeFleetUpdate(sent), sent)
})

test('what a later controller adds is left out, and so is what is not a card', async (t) => {
  const sent = {
    nodes: { put: [{ ...node, later: 1 }, { ...node, state: 'later' }, { name: 'pi-3' }, 'pi-4', null], gone: [1] },
    later: { put: [] },
    events: 'none',
    usage: { 'pi-1': 'much', 'pi-2': [1, 'x'] },
  }
  t.same(decodeFleetUpdate(sent), {
    nodes: { put: [node], gone: [] },
    usage: { 'pi-1': [null, null, null, null, null, null], 'pi-2': [1, null, null, null, null, null] },
  })
  for (const other of [undefined, null, [], 'text', 5]) t.equal(decodeFleetUpdate(other), undefined)
})
