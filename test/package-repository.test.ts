/** The repository that apt installs from, attacked: what the apt of Debian 12 (gpgv) and that of Debian 13 (sqv) do then. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { commandOrThrow } from './support/machine-commands.ts'
import { machineRoot } from './support/machine-root.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'

const script = fileURLToPath(new URL('../../test/machines/attack-repository.sh', import.meta.url))
const skip =
  skipWithout('root', isRoot()) ||
  skipWithout('mmdebstrap', existsSync('/usr/bin/mmdebstrap')) ||
  skipWithout('gpg', existsSync('/usr/bin/gpg') && existsSync('/usr/bin/gpg-agent'))

/** 0.1.0 came from candidate a week before 0.2.0. */
const expected = {
  'published twice': 'the same',
  'published with another content': 'bramble-try 0.2.0 was published with another content',
  good: 'accepted, candidate 0.2.0',
  'replayed, lists present': 'accepted, candidate 0.2.0',
  // Until it expires: nothing on such a machine is newer. dpkg does not go back to it by itself: see the last line.
  'replayed, no lists': 'accepted, candidate 0.1.0',
  inrelease: 'refused (signature), candidate none',
  packages: 'refused (content), candidate none',
  'other-key': 'refused (key), candidate none',
  unsigned: 'refused (unsigned), candidate none',
  expired: 'refused (expired), candidate none',
  'expired, Check-Valid-Until=false': 'accepted, candidate 0.1.0',
  interrupted: 'accepted, candidate 0.1.0',
  'interrupted, by-hash removed': 'refused (content), candidate none',
  'next-key': 'accepted, candidate 0.2.0',
  deb: 'installed none',
  'good, installed': 'installed 0.2.0',
  'replayed, upgraded': 'installed 0.2.0',
}

for (const release of ['bookworm', 'trixie']) {
  test(`apt of ${release} refuses what was falsified, and an interrupted publication does no harm`, {
    skip,
  }, async (t) => {
    const output = await commandOrThrow(script, [await machineRoot(release)], { withinMs: 5 * 60_000 })
    const lines = output.trim().split('\n')
    t.same(
      lines,
      Object.entries(expected).map(([name, outcome]) => `${name}: ${outcome}`),
    )
  })
}
