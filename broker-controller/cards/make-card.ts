/** Makes the image of a card: a downloaded image, with the files of a fleet on its boot partition and all else as it was. */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { bootStatusFileName } from '../../api/node/boot-status.ts'
import { syncFolder } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import { type CardJoin, cardFiles, cardJoinFile, ownImageFiles, packagesFolder, wishPath } from './card-files.ts'
import { type CardForm, planCard, recogniseCard } from './card-form.ts'
import type { CardPackage } from './card-packages.ts'
import { rangeOf } from './disk-range.ts'
import { FatVolume } from './fat/fat-volume.ts'
import { type CardImageNeeds, digestImage, packImage, unpackImage } from './image-file.ts'
import { cardCommandLine } from './kernel-command-line.ts'
import type { Partition, PartitionTable } from './partition-table.ts'
import { readOnlyWish } from './storage-script.ts'

export type WantedCardImage = {
  readonly source: string
  readonly target: string
  readonly isReplaced: boolean
  /** undefined: the image has them already. */
  readonly packages: readonly CardPackage[] | undefined
  readonly isReadOnly: boolean
  readonly nowMs: number
}

/** Compressed if the name of the target ends in .xz. */
export type WantedCard = WantedCardImage & { readonly nodeName: string | undefined }

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

/** What `writeImage` has made, beside its target. */
export type WrittenImage = {
  readonly form: CardForm
  readonly size: number
  /** Where the text of the join is in the image: in one piece. */
  readonly joinStart: number
}

/** Text files of boot partitions are smaller. */
const maxTextBytes = 256 * 1024

/** Throws with the reason, and leaves no file behind; a file that was at the target stays. */
export async function makeCard(wanted: WantedCard, needs: CardNeeds): Promise<MadeCard> {
  const { target, nodeName } = wanted
  let join: CardJoin | undefined
  const joinText = async () => {
    join = await needs.join()
    return cardJoinFile(join, nodeName)
  }
  const finish = async ({ form, size }: WrittenImage, aside: string, packedAside: string) => {
    const isPacked = target.endsWith('.xz')
    const { sha256 } = isPacked ? await pack(aside, packedAside, size, needs) : await digestImage(aside, needs.signal)
    await rename(isPacked ? packedAside : aside, target)
    return { form, size, sha256 }
  }
  const made = await writeImage(wanted, needs, joinText, finish)
  if (join === undefined) throw new Error('The image was made without terms of a join')
  return { ...made, join, fileSize: (await stat(target)).size }
}

/**
 * Makes the image of a card in the file `aside`, and lets `finish` put it, or what it makes of it in `packedAside`, at the target.
 * Throws with the reason, and leaves no file behind; a file that was at the target stays.
 */
export async function writeImage<T>(
  wanted: WantedCardImage,
  needs: CardImageNeeds,
  joinText: () => Promise<string>,
  finish: (image: WrittenImage, aside: string, packedAside: string) => Promise<T>,
): Promise<T> {
  const { source, target } = wanted
  await checkPlaces(wanted)
  const aside = `${target}.${process.pid}.part`
  const packedAside = `${aside}.xz`
  try {
    // It may hold a token: only its owner reads it.
    const file = await open(aside, 'wx+', 0o600)
    let written: WrittenImage
    try {
      const table = await unpackImage(source, file, needs)
      written = await editImage(source, file, table, wanted, joinText)
      await file.sync()
    } finally {
      await file.close()
    }
    const result = await finish(written, aside, packedAside)
    await syncFolder(dirname(target))
    return result
  } finally {
    await rm(aside, { force: true })
    await rm(packedAside, { force: true })
  }
}

async function checkPlaces({ source, target, isReplaced }: WantedCardImage): Promise<void> {
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

async function editImage(
  source: string,
  file: FileHandle,
  { boot, root }: PartitionTable,
  { packages, isReadOnly, nowMs }: WantedCardImage,
  joinText: () => Promise<string>,
): Promise<WrittenImage> {
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
  const wasReadOnly = (await fat.read(wishPath, maxTextBytes))?.toString('latin1').trim() === readOnlyWish
  const plan = planCard(form, { hasPackages: packages !== undefined, isReadOnly, wasReadOnly })
  if (typeof plan === 'string') throw new Error(`${source} ${plan}`)
  // What an earlier run has put there, and what a machine has written.
  for (const name of ['bramble', 'bramble.yaml', bootStatusFileName]) await fat.remove([name])
  for (const { fileName, path, size } of packages ?? []) {
    await fat.write([...packagesFolder, fileName], { size, chunks: createReadStream(path) })
  }
  const put = (path: readonly string[], text: string) => {
    const bytes = Buffer.from(text, 'latin1')
    return fat.write(path, { size: bytes.length, chunks: [bytes], isTogether: true })
  }
  const joinPlace = await put(['bramble.yaml'], await joinText())
  if (joinPlace === undefined) throw new Error('The terms of the join are empty')
  const files = form.kind === 'own' ? ownImageFiles(plan) : cardFiles(packages ?? [], plan)
  for (const [path, text] of files) await put(path, text)
  if (form.kind === 'raspios')
    await put(['cmdline.txt'], `${cardCommandLine(form.commandLine, { isReadOnly: plan, wasReadOnly })}\n`)
  await fat.flush()
  return { form, size: (await file.stat()).size, joinStart: boot.start + joinPlace }
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
    const packed = await packImage(from, file, { start: 0, end: size, size }, needs)
    await file.sync()
    return packed
  } finally {
    await file.close()
  }
}
