import { test } from 'tap'
import type { NodeCard } from './dashboard-messages.ts'
import { concernOf, levelOf, meanUsage, powerWords, shownNodes, stateWords, usageLevel } from './node-view.ts'

function card(name: string, more: Partial<NodeCard> = {}): NodeCard {
  return { name, state: 'ready', pods: 0, ...more }
}

test('machines that are not ready come first, then those with a problem, each in the order of their numbers', async (t) => {
  const nodes = [
    card('pi-10'),
    card('pi-2'),
    card('pi-3', { underVoltage: 'now' }),
    card('pi-4', { state: 'lost', why: 'no power' }),
    card('pi-5', { cordoned: true }),
  ]
  t.same(
    shownNodes(nodes, '', {}).map(({ name }) => name),
    ['pi-4', 'pi-3', 'pi-5', 'pi-2', 'pi-10'],
  )
})

test('the search and the filters narrow the list', async (t) => {
  const nodes = [
    card('pi-1', { zone: 'attic' }),
    card('pi-2', { state: 'not-ready', why: 'Docker hangs' }),
    card('pi-3', { cordoned: true }),
  ]
  const names = (search: string, filters = {}) => shownNodes(nodes, search, filters).map(({ name }) => name)
  t.same(names('ATTIC'), ['pi-1'])
  t.same(names('docker pi'), ['pi-2'], 'every word, also of the reason')
  t.same(names('', { state: 'notready' }), ['pi-2'])
  t.same(names('', { state: 'cordoned' }), ['pi-3'])
  t.same(names('', { state: 'ready' }), ['pi-3', 'pi-1'])
  t.same(names('', { zone: 'attic' }), ['pi-1'])
  t.same(names('', { state: 'attention' }), [])
})

test('state and concern are words that a person understands', async (t) => {
  t.equal(stateWords(card('a', { cordoned: true })), 'Ready, cordoned')
  t.equal(stateWords(card('a', { state: 'lost' })), 'No contact')
  t.equal(concernOf(card('a')), undefined)
  t.match(concernOf(card('a', { underVoltage: 'now' })), 'supply voltage')
  t.equal(concernOf(card('a', { problems: [{ type: 'StorageWear', message: 'Worn.' }] })), 'Worn.')
  t.equal(levelOf(card('a', { problems: [{ type: 'StorageWear', message: 'Worn.' }] })), 'warn')
  t.equal(levelOf(card('a', { state: 'new' })), 'idle')
  t.match(powerWords(card('a', { underVoltage: 'before' })), { level: 'warn' })
  t.equal(powerWords(card('a')), undefined)
})

test('usage is judged by what each kind can bear', async (t) => {
  t.equal(usageLevel('cpu', 100), 'good')
  t.equal(usageLevel('memory', 85), 'warn')
  t.equal(usageLevel('disk', 90), 'bad')
  t.equal(usageLevel('celsius', 69), 'good')
  t.equal(
    meanUsage(
      [
        [10, null, null, null, null, null],
        [20, null, null, null, null, null],
      ],
      0,
    ),
    15,
  )
  t.equal(meanUsage([], 0), undefined)
})
