import { test } from 'tap'
import type { FleetUpdate, NodeCard } from '../../../api/dashboard/dashboard-messages.ts'
import { emptyFleet, type FleetState, fleetAfter } from '../../../api/dashboard/fleet-state.ts'
import { cellText, fitted, widthOf, withoutFirst } from './cell-text.ts'
import { frameText, styledText } from './frame-text.ts'
import { plainLines } from './plain-lines.ts'
import { type Size, topScreen } from './top-screen.ts'
import { afterKey, firstTopState, type TopState } from './top-state.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const seconds = now / 1000
const rights = { nodes: true, usage: true, requests: true, pods: true, events: true, workloads: true }

function fleetOf(update: FleetUpdate): FleetState {
  return fleetAfter(fleetAfter(emptyFleet, { reset: rights }), { ...update, complete: true })
}

const small = fleetOf({
  nodes: {
    put: [
      { name: 'pi-1', state: 'ready', since: seconds - 90, pods: 3, podCapacity: 110, powerMeasured: true },
      {
        name: 'pi-2',
        state: 'ready',
        pods: 0,
        problems: [{ type: 'MemoryPressure', message: 'Too little memory.' }],
        underVoltage: 'before',
      },
      { name: 'pi-10', state: 'lost', since: seconds - 300, why: 'The node stopped reporting.', pods: 2 },
    ],
  },
  pods: {
    put: [
      {
        name: 'web',
        namespace: 'shop',
        status: 'CrashLoopBackOff',
        phase: 'Running',
        ready: '0/1',
        restarts: 7,
        created: seconds - 3_600,
        why: 'Container web ended with exit code 1.',
        version: '1',
      },
      {
        name: 'fine',
        namespace: 'shop',
        status: 'Running',
        phase: 'Running',
        ready: '1/1',
        isReady: true,
        version: '2',
      },
    ],
  },
  events: {
    put: [
      {
        id: 'a',
        namespace: 'shop',
        reason: 'BackOff',
        message: 'Back-off',
        object: 'Pod/web',
        at: seconds - 5,
        warning: true,
      },
      {
        id: 'b',
        namespace: '',
        reason: 'NodeReady',
        message: 'Ready',
        object: 'Node/pi-1',
        at: seconds - 90,
        count: 2,
      },
    ],
  },
  usage: { 'pi-1': [12, 40, 51, 33, 0.4, seconds - 10], 'pi-2': [2, 96, 82, 10, 0, null] },
})

function stateOf(fleet: FleetState, more: Partial<TopState> = {}): TopState {
  return { ...firstTopState('https://hub:6443'), fleet, link: { is: 'connected' }, ...more }
}

const textsOf = (state: TopState, size: Size) =>
  topScreen(state, size, now).lines.map((line) => line.map(({ text }) => text).join(''))
const screenText = (state: TopState, size: Size) =>
  textsOf(state, size)
    .map((line) => line.trimEnd())
    .join('\n')

test('machines, pods that wait and events stand in one screen, the most urgent first', async (t) => {
  t.equal(
    screenText(stateOf(small), { columns: 130, rows: 16 }),
    `\
Bramble https://hub:6443  3 machines, 1 not ready, 1 needs attention  CPU 7 %  memory 68 %  hottest 82 °C   live 12:00:00 UTC
> Machines (3)
   NAME  STATE        FOR  CPU  MEM  TEMP DISK LOAD  PODS POWER   REASON
!! pi-10 No contact 5 min   –    –     –    –     –     2 –       The node stopped reporting.
!  pi-2  Ready             2%  96%! 82°C! 10%     0     0 was low MemoryPressure: Too little memory.
   pi-1  Ready      1 min 12%  40%  51°C  33%   0.4 3/110 ok
  Pods that wait (1)
   NAMESPACE NAME STATUS           RESTARTS NODE AGE REASON
!! shop      web  CrashLoopBackOff        7 –    1 h Container web ended with exit code 1.
  Events (2)
    LAST COUNT REASON    OBJECT       MESSAGE
!    5 s     1 BackOff   shop/Pod/web Back-off
   1 min     2 NodeReady Node/pi-1    Ready


q quit  Tab next list  ↑↓ PgUp PgDn scroll  ←→ shift  / filter`,
  )
})

test('no line is wider than the terminal, and none is missing, whatever its size', async (t) => {
  const long = fleetOf({
    nodes: {
      put: Array.from({ length: 50 }, (_, i) => ({
        name: `節點-${i}`.repeat(9),
        state: 'not-ready' as const,
        why: '😀'.repeat(90),
        pods: i,
      })),
    },
  })
  for (const fleet of [small, long, emptyFleet]) {
    for (const columns of [1, 5, 20, 41, 80, 131, 300]) {
      for (const rows of [1, 2, 3, 7, 11, 24, 60]) {
        for (const more of [{}, { isTyping: true, filter: 'x' }, { pane: 'events', shift: 40 } as const]) {
          const lines = textsOf(stateOf(fleet, more), { columns, rows })
          t.equal(lines.length, rows) || t.comment(columns, rows)
          t.ok(Math.max(...lines.map(widthOf)) <= columns, `${columns} x ${rows}`)
        }
      }
    }
  }
})

test('nothing that a fleet contains controls the terminal', async (t) => {
  const hostile = '\x1b]0;owned\x07\x1b[2J\r\n\u009b31m\u202e\u2028\u200b\u{e0041}x'
  const fleet = fleetOf({
    nodes: {
      put: [
        {
          name: hostile,
          state: 'lost',
          zone: hostile,
          why: hostile,
          pods: 0,
          problems: [{ type: hostile, message: hostile }],
        },
      ],
    },
    pods: {
      put: [
        {
          name: hostile,
          namespace: hostile,
          node: hostile,
          status: hostile,
          phase: 'Failed',
          ready: hostile,
          why: hostile,
          version: '1',
        },
      ],
    },
    events: {
      put: [{ id: hostile, namespace: hostile, reason: hostile, message: hostile, object: hostile, at: seconds }],
    },
  })
  const state = stateOf(fleet, { server: firstTopState(hostile).server, link: { is: 'lost', why: hostile } })
  const controls = /[\p{C}\p{Zl}\p{Zp}]/u
  for (const line of textsOf(state, { columns: 300, rows: 20 })) t.notMatch(line, controls)
  for (const line of plainLines(fleet).values()) t.notMatch(line.replaceAll('\t', ''), controls)
})

test('wide characters take two columns, and combining marks none and few', async (t) => {
  t.same(['abc', 'é', 'e\u0301', '節點', '😀', '한'].map(widthOf), [3, 1, 1, 4, 2, 2])
  t.equal(fitted('節點機器', 5), '節點…')
  t.equal(fitted('節點機器', 6), '節點… ')
  t.equal(fitted('ab', 4, true), '  ab')
  t.equal(withoutFirst('節點x', 3), 'x')
  t.equal(cellText(`a${'\u0301'.repeat(50)}b\ufe0f`), 'a\u0301\u0301b')
})

test('a screen without a connection keeps its cards and names the reason', async (t) => {
  const lost = stateOf(small, { link: { is: 'lost', why: 'connect ECONNREFUSED' } })
  const [head = '', ...others] = textsOf(lost, { columns: 80, rows: 20 })
  t.match(head, /^ NOT CONNECTED, trying again: connect ECONNREFUSED/)
  t.match(others.join('\n'), 'pi-10')
})

test('a filter names what it leaves, and a right that is missing is named', async (t) => {
  const filtered = screenText(stateOf(small, { filter: 'pi-10' }), { columns: 100, rows: 20 })
  t.match(filtered, '> Machines (1, filter: pi-10)')
  t.notMatch(filtered, 'pi-2')
  t.match(filtered, 'No waiting pod matches.')
  const blind = fleetAfter(emptyFleet, { reset: { ...rights, nodes: false }, complete: true })
  t.match(screenText(stateOf(blind), { columns: 100, rows: 20 }), 'You may not list nodes.')
})

test('a long list is scrolled within its bounds, and columns give way to the reason', async (t) => {
  const put = Array.from(
    { length: 100 },
    (_, i): NodeCard => ({ name: `pi-${i}`, state: 'ready', zone: 'attic', pods: 0 }),
  )
  const size = { columns: 60, rows: 20 }
  let state = stateOf(fleetOf({ nodes: { put } }))
  const press = (key: Parameters<typeof afterKey>[1]) => {
    const next = afterKey(state, key, topScreen(state, size, now).extent)
    if (next !== 'quit') state = next
  }
  t.match(screenText(state, size), 'rows 1-10')
  t.notMatch(screenText(state, size), 'ZONE', 'a narrow terminal has no room for it')
  press({ key: 'text', text: 'jj' })
  t.match(screenText(state, size), 'rows 3-12')
  press({ key: 'end' })
  t.match(screenText(state, size), 'rows 91-100')
  press({ key: 'page-up' })
  t.match(screenText(state, size), 'rows 81-90')
  press({ key: 'end' })
  t.match(screenText(state, { columns: 60, rows: 90 }), 'rows 21-100', 'a larger terminal shows more')
})

test('only lines that differ are written, with colours or without', async (t) => {
  t.equal(frameText(['a', 'b'], ['a', 'c']), '\x1b[2;1H\x1b[2Kc')
  t.equal(frameText(['a'], ['a']), '')
  t.equal(frameText(undefined, ['a']), '\x1b[2J\x1b[1;1H\x1b[2Ka')
  const line = [{ text: 'x', style: 'warn' }, { text: 'y' }] as const
  t.equal(styledText(line, true), '\x1b[33mx\x1b[0my')
  t.notMatch(styledText(line, false), /\[\d*;?3\d/, 'no colour')
})

test('in a pipe each machine, waiting pod and event is a line with tabs', async (t) => {
  t.same(
    [...plainLines(small).values()],
    [
      'machine\tbad\tpi-10\tNo contact\t2026-01-01T11:55:00Z\tcpu=-\tmemory=-\ttemperature=-\tdisk=-\tpods=2\t-\tThe node stopped reporting.',
      'machine\twarn\tpi-2\tReady\t-\tcpu=2%\tmemory=96%\ttemperature=82°C\tdisk=10%\tpods=0\tWas low since boot\tMemoryPressure: Too little memory.',
      'machine\tgood\tpi-1\tReady\t2026-01-01T11:58:30Z\tcpu=12%\tmemory=40%\ttemperature=51°C\tdisk=33%\tpods=3\tSupply fine\t-',
      'pod\tbad\tshop/web\tCrashLoopBackOff\t2026-01-01T11:00:00Z\t-\tContainer web ended with exit code 1.',
      'event\twarn\tshop/Pod/web\tBackOff\t2026-01-01T11:59:55Z\tcount=1\tBack-off',
      'event\tgood\tNode/pi-1\tNodeReady\t2026-01-01T11:58:30Z\tcount=2\tReady',
    ],
  )
})
