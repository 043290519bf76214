import { test } from 'tap'
import { madeTable } from '../testing/made-card.ts'
import { readPartitionTable } from './partition-table.ts'

const boot = { type: 0x0c, sector: 16_384, sectors: 1_048_576 }
const root = { type: 0x83, sector: 1_064_960, sectors: 4_000_000 }

test('the partitions of a card are found', async (t) => {
  t.same(readPartitionTable(madeTable([boot, root])), {
    boot: { number: 1, type: 0x0c, start: 16_384 * 512, size: 2 ** 29 },
    root: { number: 2, type: 0x83, start: 1_064_960 * 512, size: 4_000_000 * 512 },
    end: 5_064_960 * 512,
  })
  for (const type of [0x04, 0x06, 0x0b, 0x0e])
    t.type(readPartitionTable(madeTable([{ ...boot, type }, root])), 'object')
  const reversed = [
    { ...boot, sector: 4_000_064 },
    { ...root, sector: 64 },
  ]
  t.match(readPartitionTable(madeTable(reversed)), { end: (4_000_064 + 1_048_576) * 512 }, 'in any order')
})

test('what is not the image of a card is refused with the reason', async (t) => {
  const none = { type: 0, sector: 0, sectors: 0 }
  for (const [sector, reason] of [
    [Buffer.alloc(100), /shorter than a sector/],
    [Buffer.alloc(512), /has no partition table/],
    [Buffer.alloc(512, 'random text, as of a zip'), /has no partition table/],
    [madeTable([{ type: 0xee, sector: 1, sectors: 0xffffffff }]), /has a GPT/],
    [madeTable([boot, root, { type: 0xee, sector: 9_000_000, sectors: 1 }]), /has a GPT/],
    [madeTable([{ ...boot, sector: 0 }, root]), /partition 1 has no place/],
    [madeTable([boot, { ...root, sectors: 0 }]), /partition 2 has no place/],
    [madeTable([boot, { ...root, sector: 1_064_959 }]), /partition 2 overlaps/],
    [madeTable([boot, root, { type: 0x83, sector: 20_000, sectors: 1 }]), /partition 3 overlaps/],
    [madeTable([]), /no FAT in its first partition \(there is none\)/],
    [madeTable([none, root]), /no FAT in its first partition \(there is none\)/],
    [madeTable([{ ...boot, type: 0x83 }, root]), /no FAT in its first partition \(type 0x83\)/],
    [madeTable([boot]), /no Linux in its second partition \(there is none\)/],
    [madeTable([boot, { ...root, type: 7 }]), /no Linux in its second partition \(type 0x07\)/],
    [madeTable([boot, root, { type: 5, sector: 9_000_000, sectors: 8 }]), /extended partition/],
  ] as const) {
    t.match(readPartitionTable(sector), reason)
  }
})

test('places beyond 2 TiB are counted without overflow', async (t) => {
  const far = { type: 0x83, sector: 0xfffffff0, sectors: 0xf }
  t.match(readPartitionTable(madeTable([boot, far])), { end: 0xffffffff * 512 })
})
