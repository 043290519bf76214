/** `bramble-controller card`: an image of Raspberry Pi OS whose machines join this fleet. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { apiClient } from '../../../daemon/api-client.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { parseDuration } from '../../../daemon/duration.ts'
import { invalidValue } from '../../../daemon/process/command-line.ts'
import type { CardJoin } from '../../cards/card-files.ts'
import { readPackages } from '../../cards/card-packages.ts'
import { imagerManifest } from '../../cards/imager-manifest.ts'
import { type MadeCard, makeCard } from '../../cards/make-card.ts'
import { cardRow } from '../command-table.ts'
import { kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { runCommand } from '../run-command.ts'
import { createNodeToken, removeToken, type TokenCommandNeeds } from '../token-command.ts'

export type CardCommandNeeds = TokenCommandNeeds & { readonly nowMs: number }

/** `argv`: what follows `card`. The exit code. */
export async function cardCommand(argv: readonly string[], needs: CardCommandNeeds): Promise<number> {
  return runCommand(cardRow, argv, needs, ({ args: [image = ''], values }) => {
    const { out, packages, ttl, replace, url, 'node-name': nodeName } = values
    if (out === undefined) return 'Give the file to write with --out'
    if (packages === undefined) return 'Give the folder with the packages for the machine with --packages'
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
        ...{ source: resolve(image), target, isReplaced: replace, nodeName, nowMs: needs.nowMs },
        packages: await readPackages(packages),
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
          imagerManifest({ ...made, name, url: address, initFormat: made.form.initFormat, nowMs: needs.nowMs }),
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
