/** Makes the file of an offered card out of a downloaded image. */
import { open, rename } from 'node:fs/promises'
import type { CardForm } from '../card-form.ts'
import { type CardImageNeeds, packImage } from '../image-file.ts'
import { type WantedCardImage, type WrittenImage, writeImage } from '../make-card.ts'
import { cardHeadBytes, downloadBytes, encodeHead, joinBytes, joinRoom } from './offered-card.ts'

export type MadeOffer = {
  readonly form: CardForm
  /** How much a download is. */
  readonly bytes: number
}

/** Throws with the reason, and leaves no file behind; a file that was at the target stays. */
export async function offerCard(wanted: WantedCardImage, needs: CardImageNeeds): Promise<MadeOffer> {
  const { target, nowMs } = wanted
  const finish = async ({ form, size, joinStart }: WrittenImage, aside: string, packedAside: string) => {
    // Without a token it is for every reader: the controller is another user than root.
    const file = await open(packedAside, 'wx', 0o644)
    try {
      await file.writeFile(Buffer.alloc(cardHeadBytes))
      const before = await packImage(aside, file, { start: 0, end: joinStart, size }, needs)
      const behind = await packImage(aside, file, { start: joinStart + joinBytes, end: size, size }, needs)
      const { system, initFormat } = form
      const card = { system, initFormat, size, madeMs: nowMs, before: before.packedBytes, behind: behind.packedBytes }
      await file.write(encodeHead(card), 0, cardHeadBytes, 0)
      await file.sync()
      await rename(packedAside, target)
      return { form, bytes: downloadBytes(card) }
    } finally {
      await file.close()
    }
  }
  return writeImage(wanted, needs, async () => String(joinRoom('')), finish)
}
