/** The field `notify` of the configuration: where notifications go, and which. */
import { isAbsolute } from 'node:path'
import { type Described, integer, list, object, oneOf, optional, text } from '../../../api/schema.ts'
import { parseDuration } from '../../../daemon/duration.ts'
import { type HouseholdBroker, householdBroker, householdBrokerFields } from '../household/household-broker.ts'
import { type BatchSettings, defaultBatchSettings } from './batches.ts'
import type { ChannelSelection } from './messages.ts'
import { problemKinds } from './problems.ts'

export const NotifySchema = object({
  delay: optional(text),
  groupWait: optional(text),
  resolveDelay: optional(text),
  channels: list(
    object({
      name: text,
      type: oneOf('ntfy', 'webhook', 'mqtt'),
      url: optional(text),
      urlFile: optional(text),
      tokenFile: optional(text),
      template: optional(text),
      contentType: optional(text),
      ...householdBrokerFields,
      topic: optional(text),
      qos: optional(integer),
      kinds: optional(list(oneOf(...problemKinds))),
      namespaces: optional(list(text)),
    }),
  ),
})

export type HttpChannel = {
  readonly name: string
  readonly type: 'ntfy' | 'webhook'
  /** The file has it in its first line: the address of many services is itself a secret. */
  readonly url: { readonly value: string } | { readonly file: string }
  /** The file has a bearer token in its first line. */
  readonly tokenFile: string | undefined
  /** Message template of a webhook. */
  readonly template: string
  readonly contentType: string
  readonly selection: ChannelSelection
}

export type MqttChannel = {
  readonly name: string
  readonly type: 'mqtt'
  readonly broker: HouseholdBroker
  readonly topic: string
  readonly qos: 0 | 1
  readonly selection: ChannelSelection
}

export type Channel = HttpChannel | MqttChannel

export type NotifySettings = BatchSettings & { readonly channels: readonly Channel[] }

export const defaultTemplate = '{"status":"{{status}}","title":"{{title}}","message":"{{message}}","count":{{count}}}'
const mostChannels = 16
const mostTemplate = 16_384
const longestTopic = 256

/** Adds what is wrong to `problems`. Undefined: there are no notifications. `household`: of channels that name no server themselves. */
export function notifySettings(
  file: Described<typeof NotifySchema> | undefined,
  problems: string[],
  household?: HouseholdBroker | undefined,
): NotifySettings | undefined {
  if (file === undefined) return undefined
  const span = (field: 'delay' | 'groupWait' | 'resolveDelay', otherwiseMs: number) => {
    const ms = file[field] === undefined ? otherwiseMs : parseDuration(file[field])
    if (ms === undefined)
      problems.push(`notify.${field}: ${JSON.stringify(file[field])} must be a duration (like 10s or 5m)`)
    return ms ?? otherwiseMs
  }
  const usual = defaultBatchSettings
  const names = new Set<string>()
  if (file.channels.length > mostChannels) problems.push(`notify.channels: there must be at most ${mostChannels}`)
  const channels = file.channels.map((channel, at) => {
    const path = `notify.channels[${at}]`
    if (names.has(channel.name)) problems.push(`${path}.name: ${JSON.stringify(channel.name)} is there already`)
    names.add(channel.name)
    if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(channel.name))
      problems.push(`${path}.name: ${JSON.stringify(channel.name)} must be lower case letters, digits and -`)
    return channel.type === 'mqtt'
      ? mqttChannelIn(channel, path, household, problems)
      : httpChannelIn(channel, channel.type, path, problems)
  })
  return {
    ...usual,
    delayMs: span('delay', usual.delayMs),
    groupWaitMs: span('groupWait', usual.groupWaitMs),
    resolveDelayMs: span('resolveDelay', usual.resolveDelayMs),
    channels,
  }
}

type ChannelFile = Described<typeof NotifySchema>['channels'][number]

function httpChannelIn(file: ChannelFile, type: HttpChannel['type'], path: string, problems: string[]): HttpChannel {
  const { name, url, urlFile, tokenFile, template = defaultTemplate, contentType = 'application/json' } = file
  const check = (fine: boolean, problem: string) => {
    if (!fine) problems.push(`${path}.${problem}`)
  }
  check((url === undefined) !== (urlFile === undefined), 'url: name either url or urlFile')
  if (url !== undefined) {
    const problem = urlProblem(url, tokenFile !== undefined)
    check(problem === undefined, `url: ${problem}`)
  }
  check(urlFile === undefined || isAbsolute(urlFile), 'urlFile: must be an absolute path')
  check(tokenFile === undefined || isAbsolute(tokenFile), 'tokenFile: must be an absolute path')
  check(type === 'webhook' || (file.template ?? file.contentType) === undefined, 'template: is only for a webhook')
  check(template.length <= mostTemplate, `template: must have at most ${mostTemplate} characters`)
  check(
    /^[\w.+-]+\/[\w.+-]+(; ?charset=[\w-]+)?$/.test(contentType),
    `contentType: ${JSON.stringify(contentType)} is not a media type`,
  )
  for (const field of mqttFields) check(file[field] === undefined, `${field}: is only for a channel of the type mqtt`)
  return {
    name,
    type,
    url: urlFile === undefined ? { value: url ?? '' } : { file: urlFile },
    tokenFile,
    template,
    contentType,
    selection: { kinds: file.kinds, namespaces: file.namespaces },
  }
}

const httpFields = ['url', 'urlFile', 'tokenFile', 'template', 'contentType'] as const
const mqttFields = ['server', 'username', 'passwordFile', 'caFile', 'certFile', 'keyFile', 'topic', 'qos'] as const

function mqttChannelIn(
  file: ChannelFile,
  path: string,
  household: HouseholdBroker | undefined,
  problems: string[],
): MqttChannel {
  const { name, topic = '', qos = 1, kinds, namespaces } = file
  const check = (fine: boolean, problem: string) => {
    if (!fine) problems.push(`${path}.${problem}`)
  }
  for (const field of httpFields) check(file[field] === undefined, `${field}: is not for a channel of the type mqtt`)
  const isTopic = topic.length <= longestTopic && /^[^$+#\p{Cc}][^+#\p{Cc}]*$/u.test(topic)
  check(isTopic, `topic: must have 1 to ${longestTopic} characters, without + and #, and not begin with $`)
  check(qos === 0 || qos === 1, `qos: ${qos} must be 0 or 1`)
  const own = householdBroker(file, path, problems)
  const broker = own ?? household
  check(broker !== undefined || file.server !== undefined, 'server: name a server here, or in homeAssistant')
  const selection = { kinds, namespaces }
  return { name, type: 'mqtt', broker: broker ?? noBroker, topic, qos: qos === 0 ? 0 : 1, selection }
}

/** With a problem that was reported. */
const noBroker: HouseholdBroker = {
  isEncrypted: true,
  host: '',
  port: 0,
  username: undefined,
  passwordFile: undefined,
  caFile: undefined,
  clientFiles: undefined,
}

/** A token must not cross a network in plain text. The URL is not part of the problem: it may be a secret. */
export function urlProblem(url: string, hasToken: boolean): string | undefined {
  if (!URL.canParse(url)) return 'must be a URL'
  const { protocol, username, password } = new URL(url)
  if (username !== '' || password !== '') return 'must not have a password; use tokenFile'
  if (protocol === 'https:' || (protocol === 'http:' && !hasToken)) return undefined
  return hasToken ? 'must begin with https:// if there is a tokenFile' : 'must begin with https:// or http://'
}
