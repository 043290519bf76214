/** Makes the image of a card: a downloaded image, with the files of a fleet on its boot partition and all else as it was. */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { bootStatusFileName } from '../../api/node/boot-status.ts'
import { syncFolder } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import { type CardJoin, cardFiles, packagesFolder } from './card-files.ts'
import { type CardForm, recogniseCard } from './card-form.ts'
import type { CardPackage } from './card-packages.ts'
import { rangeOf } from './disk-range.ts'
import { FatVolume } from './fat/fat-volume.ts'
import { type CardImageNeeds, digestImage, packImage, unpackImage } from './image-file.ts'
import { cardCommandLine } from './kernel-command-line.ts'
import type { Partition, PartitionTable } from './partition-table.ts'

export type WantedCard = {
  readonly source: string
  /** Compressed if its name ends in .xz. */
  readonly target: string
  readonly isReplaced: boolean
  readonly nodeName: string | undefined
  readonly packages: readonly CardPackage[]
  readonly nowMs: number
}

export type CardNeeds = CardImageNeeds & {
  /** Asked once the image is recognised: a token that nothing carries is not made. */
  readonly join: () => Promise<CardJoin>
}

export type MadeCard = {
  readonly form: CardForm
  readonly join: CardJoin
  /** Size of the image, digest of it, and size of the file. */
  readonly size: number
  readonly sha256: string
  readonly fileSize: number
}

/** Text files of boot partitions are smaller. */
const maxTextBytes = 256 * 1024

/** Throws with the reason, and leaves no file behind; a file that was at the target stays. */
export async function makeCard(wanted: WantedCard, needs: CardNeeds): Promise<MadeCard> {
  const { source, target } = wanted
  await checkPlaces(wanted)
  const aside = `${target}.${process.pid}.part`
  const packedAside = `${aside}.xz`
  try {
    // It holds a token: only its owner reads it.
    const file = await open(aside, 'wx+', 0o600)
    let result: { form: CardForm; join: CardJoin; size: number }
    try {
      const table = await unpackImage(source, file, needs)
      result = await editCard(source, file, table, wanted, needs)
      await file.sync()
    } finally {
      await file.close()
    }
    const { form, join, size } = result
    const isPacked = target.endsWith('.xz')
    const { sha256 } = isPacked ? await pack(aside, packedAside, size, needs) : await digestImage(aside, needs.signal)
    await rename(isPacked ? packedAside : aside, target)
    await syncFolder(dirname(target))
    return { form, join, size, sha256, fileSize: (await stat(target)).size }
  } finally {
    await rm(aside, { force: true })
    await rm(packedAside, { force: true })
  }
}

async function checkPlaces({ source, target, isReplaced }: WantedCard): Promise<void> {
  const from = await stat(source)
  const to = await stat(target).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
  if (!from.isFile()) throw new Error(`${source} is not a file`)
  if (to === undefined) return
  if (!to.isFile()) throw new Error(`${target} is not a file: write the image to a file, and that to the card`)
  if (to.ino === from.ino && to.dev === from.dev) throw new Error(`${target} is the image itself: give another name`)
  if (!isReplaced) throw new Error(`${target} exists: give another name, or --replace`)
}

async function editCard(
  source: string,
  file: FileHandle,
  { boot, root }: PartitionTable,
  { nodeName, packages, nowMs }: WantedCard,
  { join: askJoin }: CardNeeds,
) {
  await checkRoot(source, file, root)
  const fat = await FatVolume.open(rangeOf(file, boot.start, boot.size), nowMs)
  const text = async (name: string) => (await fat.read([name], maxTextBytes))?.toString('latin1')
  const form = recogniseCard({
    names: (await fat.list([])) ?? [],
    commandLine: await text('cmdline.txt'),
    config: await text('config.txt'),
    issue: await text('issue.txt'),
  })
  if (typeof form === 'string') throw new Error(`${source} ${form}`)
  // What an earlier run has put there, and what a machine has written.
  for (const name of ['bramble', 'bramble.yaml', bootStatusFileName]) await fat.remove([name])
  for (const { fileName, path, size } of packages) {
    await fat.write([...packagesFolder, fileName], { size, chunks: createReadStream(path) })
  }
  const join = await askJoin()
  for (const [path, content] of [
    ...cardFiles(join, nodeName, packages),
    [['cmdline.txt'], `${cardCommandLine(form.commandLine)}\n`] as const,
  ]) {
    const bytes = Buffer.from(content, 'latin1')
    await fat.write(path, { size: bytes.length, chunks: [bytes] })
  }
  await fat.flush()
  return { form, join, size: (await file.stat()).size }
}

/** ext4's mark in its first block. */
async function checkRoot(source: string, file: FileHandle, { start, size }: Partition): Promise<void> {
  const mark = size < 4096 ? undefined : await rangeOf(file, start, size).read(1024 + 56, 2)
  if (mark?.readUInt16LE() !== 0xef53)
    throw new Error(`${source} has no ext4 in its second partition: it is not Raspberry Pi OS`)
}

async function pack(
  from: string,
  to: string,
  size: number,
  needs: CardImageNeeds,
): Promise<{ readonly sha256: string }> {
  const file = await open(to, 'wx', 0o600)
  try {
    const packed = await packImage(from, file, size, needs)
    await file.sync()
    return packed
  } finally {
    await file.close()
  }
}
