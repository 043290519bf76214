/** Offered cards are made, listed and read as a download. Needs xz. */
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { madeCard, madeFat, putFiles } from '../../testing/made-card.ts'
import { memoryDisk } from '../../testing/memory-disk.ts'
import { FatVolume } from '../fat/fat-volume.ts'
import { offerCard } from './offer-card.ts'
import { cardHeadBytes, decodeHead, downloadBytes, joinBytes, joinRoom } from './offered-card.ts'
import { offeredCards, offeredName } from './offered-cards.ts'

const nowMs = Date.UTC(2026, 10, 29)
const system = {
  'cmdline.txt': 'console=tty1 root=PARTUUID=1-02 rootwait\n',
  'config.txt': 'auto_initramfs=1\n',
  'issue.txt': 'Raspberry Pi reference 2025-12-04\nGenerated using pi-gen, x, stage2\n',
  'kernel8.img': 'k'.repeat(9000),
}
const fatStart = 16 * 512

/** A FAT whose first gap is too small for the terms of a join. */
async function withGap(): Promise<Buffer> {
  const fat = await putFiles(madeFat(), { 'old.txt': 'x'.repeat(1500), ...system })
  const volume = await FatVolume.open(memoryDisk(fat), nowMs)
  await volume.remove(['old.txt'])
  await volume.flush()
  return fat
}

async function anOffer(t: Test) {
  const folder = testFolder(t)
  const source = join(folder, 'raspios.img')
  const target = join(folder, 'raspios.card')
  await writeFile(source, madeCard(await withGap()))
  const wanted = { source, target, isReplaced: false, isReadOnly: false, packages: [], nowMs }
  const made = await offerCard(wanted, { signal: new AbortController().signal, progress: () => undefined })
  const cards = offeredCards(folder, quietLog(t))
  const download = async (terms: string, from = 0) => {
    const card = await cards.find('raspios')
    if (card === undefined) throw new Error('The card is not there')
    const pieces: Buffer[] = []
    for await (const piece of cards.read(card, joinRoom(terms), from)) pieces.push(piece)
    return Buffer.concat(pieces)
  }
  return { folder, source, target, made, cards, download }
}

const bootOf = (image: Buffer) =>
  FatVolume.open(memoryDisk(image.subarray(fatStart, fatStart + image.readUInt32LE(446 + 12) * 512)), nowMs)

test('each download is a whole image with the terms of its own join', async (t) => {
  const { made, target, cards, download } = await anOffer(t)
  t.equal((await stat(target)).mode & 0o777, 0o644, 'the controller is another user')
  const [card] = await cards.list()
  t.match(card, { name: 'raspios', system: 'Raspberry Pi reference 2025-12-04', initFormat: 'systemd', madeMs: nowMs })
  const images: Buffer[] = []
  for (const terms of ['token: one\n', `token: two${'.'.repeat(joinBytes - 11)}\n`]) {
    const packed = await download(terms)
    t.equal(packed.length, made.bytes)
    t.equal(packed.length, card && downloadBytes(card))
    const image = execFileSync('xz', ['--decompress', '--stdout'], { input: packed, maxBuffer: 1e8 })
    t.equal(image.length, card?.size)
    const boot = await bootOf(image)
    t.equal(String(await boot.read(['bramble.yaml'], 9999)).trimEnd(), terms.trimEnd())
    t.match(await boot.list(['bramble']), ['SHA256SUMS', 'first-boot.sh'])
    images.push(image)
  }
  const [one = Buffer.alloc(0), two = Buffer.alloc(0)] = images
  const differing = [...one.keys()].filter((at) => one[at] !== two[at])
  t.ok((differing.at(-1) ?? 0) - (differing[0] ?? 0) < joinBytes, 'nothing else differs')
})

test('a download that was cut off goes on at every byte', async (t) => {
  const { target, download } = await anOffer(t)
  const whole = await download('token: one\n')
  const { before = 0 } =
    decodeHead((await readFile(target)).subarray(0, cardHeadBytes), (await stat(target)).size) ?? {}
  for (const from of [1, before - 1, before, before + 1, before + 1000, whole.length - 1]) {
    t.ok((await download('token: one\n', from)).equals(whole.subarray(from)), `from ${from}`)
  }
})

test('what is not such a file, or cannot be read, is not offered', async (t) => {
  const { folder, target, cards } = await anOffer(t)
  const whole = await readFile(target)
  await writeFile(join(folder, 'cut.card'), whole.subarray(0, whole.length - 1))
  await writeFile(join(folder, 'short.card'), 'x')
  await writeFile(join(folder, 'words.card'), Buffer.alloc(9000, 'words'))
  await mkdir(join(folder, 'folder.card'))
  execFileSync('mkfifo', [join(folder, 'pipe.card')])
  await chmod(target, 0o600)
  t.match(await cards.list(), [{ name: 'raspios' }])
  for (const name of ['..', '../raspios', 'raspios.card', '', 'none', '.raspios']) {
    t.equal(await cards.find(name), undefined, JSON.stringify(name))
  }
})

test('a card that was replaced meanwhile is not read as the one before', async (t) => {
  const { folder, target, cards, download } = await anOffer(t)
  const card = await cards.find('raspios')
  if (card === undefined) return t.fail('no card')
  const head = decodeHead((await readFile(target)).subarray(0, cardHeadBytes), (await stat(target)).size)
  t.ok(head)
  const changed = (await readFile(target)).toString('latin1').replace(`"madeMs":${nowMs}`, `"madeMs":${nowMs + 1}`)
  await writeFile(join(folder, 'raspios.card'), changed, 'latin1')
  await t.rejects(cards.read(card, joinRoom(''), 0).next(), /replaced meanwhile/)
  t.ok((await download('')).length > 0)
})

test('terms that are longer than their room are refused', (t) => {
  t.throws(() => joinRoom('x'.repeat(joinBytes + 1)), /2049 bytes, the room 2048/)
  t.end()
})

test('the name of an offered card is that of its image', (t) => {
  t.equal(offeredName('2026-11-19-raspios-trixie-arm64-lite.img.xz'), '2026-11-19-raspios-trixie-arm64-lite')
  t.equal(offeredName('a.img'), 'a')
  t.equal(offeredName('.img.xz'), undefined)
  t.equal(offeredName('a b.img'), undefined)
  t.end()
})
