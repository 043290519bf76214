import { test } from 'tap'
import { initialUpdateState, type UpdateState } from '../../daemon/updates/update-state.ts'
import type { FetchOutcome } from './fetch-release.ts'
import { updatePass } from './update-pass.ts'
import type { UpdateNote } from './update-report.ts'

const release = { version: '1.5.0', sequence: 15, digest: 'a' }
const base = { version: '1.4.0', sequence: 14 }
const fetched: FetchOutcome = { outcome: 'fetched', from: '/downloads/a' }

/** A machine that wants 1.5.0, and what its updater did. */
function machine(given: { readonly state?: Partial<UpdateState>; readonly fetch?: () => Promise<FetchOutcome> } = {}) {
  const now = {
    wanted: { release, rules: { isMetered: false } } as
      | { release: typeof release; rules: { isMetered: boolean } }
      | undefined,
    install: async () => 'Version 1.5.0 is on trial',
  }
  const done: (string | UpdateNote | undefined)[] = []
  const pass = () =>
    updatePass({
      files: {
        state: async () => ({ ...initialUpdateState, ...given.state }),
        wanted: async () => now.wanted,
        saveNote: async (note) => void done.push(note),
      },
      base,
      fetch: async ({ version }) => {
        done.push(`fetch ${version}`)
        return given.fetch === undefined ? fetched : given.fetch()
      },
      install: async (from) => {
        done.push(`install ${from}`)
        return now.install()
      },
      removeDownloads: async () => void done.push('remove'),
    })
  return { now, done, pass }
}

test('the release that is wanted is downloaded and installed, and the download removed', async (t) => {
  const { done, pass } = machine()
  t.equal(await pass(), 'Version 1.5.0 is on trial')
  t.same(done, ['fetch 1.5.0', 'install /downloads/a', 'remove', undefined])
})

const idle: { readonly [sentence: string]: Partial<UpdateState> } = {
  'a release that is committed is not downloaded': { committed: release },
  'a release that was rejected is not downloaded again': {
    rejected: [{ version: '1.5.0', digest: 'x', reason: 'bad' }],
  },
  'while another version is on trial nothing is downloaded': {
    trial: {
      ...release,
      version: '1.4.9',
      sequence: 14.9,
      attemptsLeft: 2,
      wasConnected: true,
      containers: [],
      epoch: '',
    },
  },
}
for (const [sentence, state] of Object.entries(idle)) {
  test(sentence, async (t) => {
    const { done, pass } = machine({ state })
    await pass()
    t.same(done, ['remove', undefined])
  })
}

test('a release that is withdrawn is not downloaded, and not installed if that happens meanwhile', async (t) => {
  const without = machine()
  without.now.wanted = undefined
  await without.pass()
  t.same(without.done, ['remove', undefined])
  const meanwhile = machine({
    fetch: async () => {
      meanwhile.now.wanted = undefined
      return fetched
    },
  })
  await meanwhile.pass()
  t.same(meanwhile.done, ['fetch 1.5.0', 'remove', undefined])
})

test('why a release waits or is blocked is noted, and the download kept', async (t) => {
  for (const outcome of ['waiting', 'blocked'] as const) {
    const { done, pass } = machine({ fetch: async () => ({ outcome, reason: 'the disk is full' }) })
    t.equal(await pass(), `Version 1.5.0 is ${outcome}: the disk is full`)
    t.same(done, ['fetch 1.5.0', { sequence: 15, outcome, reason: 'the disk is full' }])
  }
})

test('a controller that is away, or a disk that fails, is noted and tried again', async (t) => {
  const away = machine({ fetch: () => Promise.reject(new Error('connect ECONNREFUSED')) })
  await away.pass()
  t.match(away.done.at(-1), { outcome: 'waiting', reason: /ECONNREFUSED/ })
  const failing = machine()
  failing.now.install = () => Promise.reject(new Error('Input/output error'))
  await failing.pass()
  t.match(failing.done.at(-1), { outcome: 'waiting', reason: /Input\/output error/ })
})
