/** The images of cards in a folder of the controller, which the dashboard offers. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { cardHeadBytes, cardPieces, decodeHead, type OfferedCard, offeredEnd } from './offered-card.ts'

export type NamedCard = OfferedCard & {
  /** The name of its file, without the end. */
  readonly name: string
}

export interface OfferedCards {
  /** By name. What is not the file of such a card is left out, and logged. */
  list(): Promise<readonly NamedCard[]>
  /** Undefined: there is no such card. */
  find(name: string): Promise<NamedCard | undefined>
  /** A download from this byte on, with these terms of a join. Throws if the card is not there any more. */
  read(card: NamedCard, terms: Buffer, from: number): AsyncGenerator<Buffer>
}

const nameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$/
const mostCards = 20
const chunkBytes = 64 * 1024

/** The name under which an image is offered: that of its file without .img.xz; undefined: it cannot be one. */
export function offeredName(fileName: string): string | undefined {
  const name = fileName.replace(/(\.img)?(\.xz)?$/, '')
  return nameForm.test(name) ? name : undefined
}

/** In the data directory of the controller. */
export const offeredFolderName = 'cards'

export function offeredCards(folder: string, log: Log): OfferedCards {
  const pathOf = (name: string) => join(folder, `${name}${offeredEnd}`)
  const find = async (name: string): Promise<NamedCard | undefined> => {
    if (!nameForm.test(name)) return undefined
    const path = pathOf(name)
    const file = await openFile(path).catch((error: unknown) => {
      if (!isMissing(error)) log.warn('Card not offered: its file cannot be read', { path, error })
    })
    if (file === undefined) return undefined
    const card = await headOf(file).finally(() => file.close())
    if (card !== undefined) return { name, ...card }
    log.warn("Card not offered: its file is not one that 'bramble-controller card --offer' has made", { path })
    return undefined
  }
  return {
    find,
    async list() {
      const found = await readdir(folder).catch((error: unknown) => {
        if (!isMissing(error)) log.warn('No cards offered: their folder cannot be read', { folder, error })
        return []
      })
      const names = found.filter((one) => one.endsWith(offeredEnd)).map((one) => one.slice(0, -offeredEnd.length))
      const cards: NamedCard[] = []
      for (const name of names.sort().slice(0, mostCards)) {
        const card = await find(name)
        if (card !== undefined) cards.push(card)
      }
      return cards
    },
    // It opens the file itself: a client that is gone by then never starts it.
    async *read({ name, ...card }, terms, from) {
      const file = await openFile(pathOf(name))
      try {
        const now = await headOf(file)
        if (JSON.stringify(now) !== JSON.stringify(card)) throw new Error(`The card ${name} was replaced meanwhile`)
        for (const piece of cardPieces(card, terms, from)) {
          if ('bytes' in piece) yield piece.bytes
          else yield* partOf(file, piece.start, piece.length)
        }
      } finally {
        await file.close()
      }
    },
  }
}

/** A pipe would keep this waiting. */
function openFile(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NONBLOCK)
}

async function headOf(file: FileHandle): Promise<OfferedCard | undefined> {
  const status = await file.stat()
  if (!status.isFile() || status.size < cardHeadBytes) return undefined
  const head = Buffer.alloc(cardHeadBytes)
  await file.read(head, 0, cardHeadBytes, 0)
  return decodeHead(head, status.size)
}

async function* partOf(file: FileHandle, start: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length; ) {
    const bytes = Buffer.allocUnsafe(Math.min(chunkBytes, length - done))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, start + done)
    if (bytesRead === 0) throw new Error('The file of an offered card was cut off')
    yield bytes.subarray(0, bytesRead)
    done += bytesRead
  }
}
