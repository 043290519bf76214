/** `bramble-controller card`: an image of Raspberry Pi OS, or one of ours, whose machines join this fleet. */
import { mkdir } from 'node:fs/promises'
import { basename, join as joinPath, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { apiClient } from '../../../daemon/api-client.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { parseDuration } from '../../../daemon/duration.ts'
import { invalidValue } from '../../../daemon/process/command-line.ts'
import type { CardJoin } from '../../cards/card-files.ts'
import { readPackages } from '../../cards/card-packages.ts'
import { imagerManifest } from '../../cards/imager-manifest.ts'
import { type MadeCard, makeCard, type WantedCardImage } from '../../cards/make-card.ts'
import { offerCard } from '../../cards/offered/offer-card.ts'
import { offeredEnd } from '../../cards/offered/offered-card.ts'
import { offeredFolderName, offeredName } from '../../cards/offered/offered-cards.ts'
import { cardRow } from '../command-table.ts'
import { kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { runCommand } from '../run-command.ts'
import { createNodeToken, removeToken, type TokenCommandNeeds } from '../token-command.ts'

export type CardCommandNeeds = TokenCommandNeeds & { readonly nowMs: number }

/** `argv`: what follows `card`. The exit code. */
export async function cardCommand(argv: readonly string[], needs: CardCommandNeeds): Promise<number> {
  return runCommand(cardRow, argv, needs, ({ args: [image = ''], values }) => {
    const { out, packages, ttl, replace, url, offer, 'node-name': nodeName, 'read-only': isReadOnly } = values
    if (offer) return offering(image, values, needs)
    if (out === undefined) return 'Give the file to write with --out, or --offer'
    const ttlMs = parseDuration(ttl)
    if (ttlMs === undefined || ttlMs === 0) return invalidValue('--ttl', ttl, 'use a duration like 24h or 1h30m')
    if (url !== undefined && !isHttp(url)) return invalidValue('--url', url, 'use https://HOST/FILE')
    const nameProblem = nodeName === undefined ? undefined : dnsSubdomainProblem(nodeName)
    if (nameProblem !== undefined) return `Invalid value ${JSON.stringify(nodeName)} for --node-name: it ${nameProblem}`
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    return async () => {
      const access = await readKubeconfig(path, context)
      let join: CardJoin | undefined
      const target = resolve(out)
      const wanted = {
        ...{ source: resolve(image), target, isReplaced: replace, nodeName, isReadOnly, nowMs: needs.nowMs },
        packages: packages === undefined ? undefined : await readPackages(packages),
      }
      try {
        const made = await makeCard(wanted, {
          signal: needs.signal,
          progress: (text) => needs.stderr(`${text}\n`),
          async join() {
            const description = `the card ${out}`.slice(0, 200)
            const { server, token, caHash } = await createNodeToken({ ttlMs, description }, access, needs)
            join = { server, token, caHash, expiration: token.expiration }
            return join
          },
        })
        const list = target.replace(/(\.img)?(\.xz)?$/, '.rpi-imager-manifest')
        const name = `${made.form.system} for ${new URL(made.join.server).host}`
        const address = url ?? pathToFileURL(target).href
        await replaceFile(
          list,
          imagerManifest([{ ...made, name, url: address, initFormat: made.form.initFormat, madeMs: needs.nowMs }]),
          0o644,
        )
        return summary(target, list, made)
      } catch (error) {
        // No card has it.
        if (join !== undefined) await removeToken(join.token.id, apiClient(access), needs.signal).catch(() => undefined)
        throw error
      }
    }
  })
}

type OfferValues = {
  readonly out?: string | undefined
  readonly url?: string | undefined
  readonly 'node-name'?: string | undefined
  readonly packages?: string | undefined
  readonly 'data-dir': string
  readonly replace: boolean
  readonly 'read-only': boolean
}

/** One image serves many machines, and its token is made on the dashboard. */
function offering(image: string, values: OfferValues, { signal, nowMs, stderr }: CardCommandNeeds) {
  const { packages, replace, 'read-only': isReadOnly } = values
  for (const option of ['out', 'url', 'node-name'] as const) {
    if (values[option] !== undefined)
      return `Leave out --${option}: with --offer the dashboard makes a card of the image`
  }
  const name = offeredName(basename(image))
  if (name === undefined) return invalidValue('IMAGE', image, 'its name may have letters, digits, and . _ -')
  return async () => {
    const folder = joinPath(resolve(values['data-dir']), offeredFolderName)
    const wanted: WantedCardImage = {
      ...{ source: resolve(image), target: joinPath(folder, `${name}${offeredEnd}`), isReplaced: replace },
      ...{ isReadOnly, nowMs, packages: packages === undefined ? undefined : await readPackages(packages) },
    }
    await mkdir(folder, { recursive: true, mode: 0o755 })
    const { form, bytes } = await offerCard(wanted, { signal, progress: (text) => stderr(`${text}\n`) })
    return `${wanted.target}: ${form.system}, ${Math.ceil(bytes / 1e6)} MB to download
The dashboard offers it under 'Add a machine', with a new token each time. Remove the file to end that.
`
  }
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && ['http:', 'https:'].includes(new URL(text).protocol)
}

function summary(target: string, list: string, { form, join }: MadeCard): string {
  const { token, expiration } = join
  return `${target}: ${form.system}, for the fleet at ${join.server}
${list}: open it with Raspberry Pi Imager to write the image with Wi-Fi, user and other settings
Write it to a card within the life of its token, which everybody with the image or the card can read until the machine has joined.
The token ${token.id} ${expiration === undefined ? 'never expires' : `expires at ${expiration}`}; 'bramble-controller token delete ${token.id}' revokes it.
`
}
