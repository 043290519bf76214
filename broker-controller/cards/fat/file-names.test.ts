import { test } from 'tap'
import {
  displayedShortName,
  isWritableName,
  lettersOf,
  longNameEntries,
  shortNameOf,
  shortNameSum,
} from './file-names.ts'

const short = (name: string, ...taken: readonly string[]) => shortNameOf(name, new Set(taken))

test('a name that fits keeps its letters: firmware reads short names', async (t) => {
  t.same(short('CMDLINE.TXT'), { short: 'CMDLINE TXT', isLong: false })
  t.same(short('cmdline.txt'), { short: 'CMDLINE TXT', isLong: true })
  t.same(short('bramble'), { short: 'BRAMBLE    ', isLong: true })
  t.same(short('a.b'), { short: 'A       B  ', isLong: true })
})

test('another name gets a short one that is free', async (t) => {
  t.same(short('bramble.yaml'), { short: 'BRAMBL~1YAM', isLong: true })
  t.same(short('bramble.yaml', 'BRAMBL~1YAM'), { short: 'BRAMBL~2YAM', isLong: true })
  t.same(short('cmdline.txt', 'CMDLINE TXT'), { short: 'CMDLIN~1TXT', isLong: true })
  t.same(short('x_1.2.3+y.deb'), { short: 'X_123_~1DEB', isLong: true })
  t.same(short('a.conf.d'), { short: 'ACONF~1 D  ', isLong: true })
  const taken = Array.from({ length: 9 }, (_, i) => `BRAMBL~${i + 1}YAM`)
  t.same(short('bramble.yaml', ...taken), { short: 'BRAMB~10YAM', isLong: true })
})

test('the entries of a long name hold it, last part first, with the sum of the short one', async (t) => {
  const name = 'bramble-agent_1.2.3_arm64.deb'
  const entries = longNameEntries(name, 'BRAMBL~1DEB')
  t.same(
    entries.map((one) => one[0]),
    [0x43, 2, 1],
  )
  t.ok(entries.every((one) => one[11] === 0x0f && one[13] === shortNameSum(Buffer.from('BRAMBL~1DEB'))))
  t.equal(entries.map(lettersOf).reverse().join(''), name)
  t.equal(longNameEntries('thirteen-char', 'THIRTE~1   ').length, 1, 'without an end where it fills the entry')
  t.equal(longNameEntries('fourteen-chars', 'FOURTE~1   ').length, 2)
})

test('a short name is shown with its dot, and in lower case where its bits are set', async (t) => {
  const bytes = Buffer.from('KERNEL8 IMG')
  t.equal(displayedShortName(bytes, 0), 'KERNEL8.IMG')
  t.equal(displayedShortName(bytes, 0x18), 'kernel8.img')
  t.equal(displayedShortName(bytes, 0x08), 'kernel8.IMG')
  t.equal(displayedShortName(Buffer.from('README     '), 0), 'README')
})

test('names with a path, a colon or a blank are not written', async (t) => {
  for (const name of ['a', 'x_1%3a2~rc1+b1-1_all.deb', 'a'.repeat(200)]) t.ok(isWritableName(name), name)
  for (const name of ['', '.', '..', 'a/b', 'a\\b', 'a:b', 'a b', 'é', 'a.', '-a', 'a\0', 'a'.repeat(201)]) {
    t.notOk(isWritableName(name), JSON.stringify(name))
  }
})
