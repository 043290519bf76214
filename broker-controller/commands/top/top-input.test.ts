import { test } from 'tap'
import { eventDecoder } from './event-stream.ts'
import { keyDecoder } from './key-decoder.ts'
import { afterKey, firstTopState, type Key, type TopState } from './top-state.ts'

const extent = { rows: 100, height: 10 }

/** The state after these keys; undefined when one of them quits. */
function pressed(keys: readonly Key[], first: TopState = firstTopState('')): TopState | undefined {
  let state: TopState | 'quit' = first
  for (const key of keys) {
    state = afterKey(state, key, extent)
    if (state === 'quit') return undefined
  }
  return state
}
const typed = (text: string): Key => ({ key: 'text', text })

test('sequences of a terminal become keys, and unknown ones are left out', async (t) => {
  const keys = keyDecoder()
  const of = (text: string) => keys(Buffer.from(text)).map((one) => (one.key === 'text' ? one.text : one.key))
  t.same(of('\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[Z\t'), [
    'up',
    'down',
    'page-up',
    'page-down',
    'home',
    'end',
    'back-tab',
    'tab',
  ])
  t.same(of('\x1b'), ['escape'])
  t.same(of('\x1b[200~ab\x1b[201~\x1b[1;5Cq\x03'), ['ab', 'q', 'interrupt'])
  t.same(of('/pi\r\x7f\x0c\x1a'), ['/pi', 'enter', 'backspace', 'redraw', 'suspend'])
  const [first = 0, ...rest] = Buffer.from('é')
  t.same(keys(Buffer.from([first])), [])
  t.same(keys(Buffer.from(rest)), [typed('é')])
})

test('q and Ctrl-C quit; in a filter q is a letter', async (t) => {
  t.equal(pressed([typed('q')]), undefined)
  t.equal(pressed([{ key: 'interrupt' }]), undefined)
  t.match(pressed([typed('/q')]), { filter: 'q', isTyping: true })
  t.equal(pressed([typed('/q'), { key: 'interrupt' }]), undefined)
})

test('a filter is typed, kept with Enter and cleared with Escape', async (t) => {
  const kept = pressed([typed('/'), typed('pix'), { key: 'backspace' }, { key: 'enter' }])
  t.match(kept, { filter: 'pi', isTyping: false })
  t.match(kept && pressed([{ key: 'escape' }], kept), { filter: '' })
  t.match(pressed([typed('/pi'), { key: 'escape' }]), { filter: '', isTyping: false })
  t.equal(pressed([typed(`/${'x'.repeat(500)}`)])?.filter.length, 100)
})

test('Tab goes from list to list, and each keeps its place', async (t) => {
  const state = pressed([typed('j'), { key: 'tab' }, typed('G'), { key: 'tab' }, { key: 'down' }, { key: 'tab' }])
  t.match(state, { pane: 'machines', first: { machines: 1, pods: 90, events: 1 } })
  t.match(pressed([{ key: 'back-tab' }]), { pane: 'events' })
})

test('no key moves out of the list', async (t) => {
  t.match(pressed([{ key: 'up' }, { key: 'left' }]), { first: { machines: 0 }, shift: 0 })
  t.match(pressed([{ key: 'end' }, { key: 'page-down' }, { key: 'down' }]), { first: { machines: 90 } })
  t.match(pressed([typed('l'), typed('l'), typed('h')]), { shift: 20 })
  t.match(afterKey(firstTopState(''), { key: 'end' }, { rows: 3, height: 10 }), { first: { machines: 0 } })
})

test('events come in any pieces', async (t) => {
  const text = 'retry: 1000\n\n: \n\ndata: {"a":"é"}\r\n\r\ndata: b\ndata: c\n\n'
  for (const size of [1, 2, 7, 1_000]) {
    const events = eventDecoder()
    const bytes = Buffer.from(text)
    const found: string[] = []
    for (let at = 0; at < bytes.length; at += size) found.push(...events(bytes.subarray(at, at + size)))
    t.same(found, ['{"a":"é"}', 'b\nc'])
  }
})

test('a message without an end is refused before it fills the memory', async (t) => {
  const events = eventDecoder()
  const piece = Buffer.alloc(1024 * 1024, 'x')
  t.throws(() => {
    for (let i = 0; i < 20; i++) events(piece)
  }, /longer than/)
})
