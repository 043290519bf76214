/** The formats of text that schemas may ask for (staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go). */
import { ipVersion, isIPv4 } from '../../../api/text/ip-address.ts'

type FormatCheck = (text: string) => boolean

const uuid = (version: string, variant = '[0-9a-f]') =>
  matching(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i'))

/** By name, without dashes: others are not checked, nor are those of numbers. */
const formats: ReadonlyMap<string, FormatCheck> = new Map<string, FormatCheck>([
  ['bsonobjectid', matching(/^[0-9a-f]{24}$/i)],
  ['uri', isURI],
  ['email', matching(/^(?:[^<>@]*<)?[^\s<>@]+@[^\s<>@]+>?$/)],
  ['hostname', isHostname],
  ['ipv4', isSloppyIPv4],
  ['ipv6', (text) => text.includes(':') && ipVersion(text) === 6],
  ['cidr', isCIDR],
  ['mac', isMAC],
  ['uuid', uuid('[0-9a-f]')],
  ['uuid3', uuid('3')],
  ['uuid4', uuid('4', '[89ab]')],
  ['uuid5', uuid('5', '[89ab]')],
  ['isbn', (text) => isISBN10(text) || isISBN13(text)],
  ['isbn10', isISBN10],
  ['isbn13', isISBN13],
  ['creditcard', isCreditCard],
  ['ssn', matching(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ['hexcolor', matching(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i)],
  ['rgbcolor', isRGBColor],
  ['byte', isBase64],
  ['password', () => true],
  ['date', isDate],
  ['duration', isDuration],
  ['datetime', isDateTime],
])

/** Whether the text has the format. A format that is not known is not checked. */
export function hasFormat(format: string, text: string): boolean {
  return formats.get(format.replaceAll('-', ''))?.(text) ?? true
}

const longestText = 4_096

/** These expressions need time in proportion to the text. */
function matching(expression: RegExp): FormatCheck {
  return (text) => text.length <= longestText && expression.test(text)
}

/** As Go's url.ParseRequestURI: absolute, or a path. */
function isURI(text: string): boolean {
  if (text.startsWith('/')) return !/[\s\x7f]/.test(text)
  return /^[a-z][a-z0-9+.-]*:/i.test(text) && URL.canParse(text) && !/[\s\x7f]/.test(text)
}

/** RFC 1034, with digits at the start of a label and letters of any script. */
function isHostname(text: string): boolean {
  if (text.length > 255 || text === '') return false
  const labels = text.split('.')
  const areLabels = labels.every(
    (label) => label.length <= 63 && /^[a-z0-9\p{L}\p{S}](?:[a-z0-9\p{L}\p{S}-]*[a-z0-9\p{L}\p{S}])?$/iu.test(label),
  )
  return areLabels && (labels.length === 1 || /^[a-z\p{L}]{2,63}$/iu.test(labels.at(-1) ?? ''))
}

/** Leading zeros are read as decimal digits (ParseIPSloppy). */
function isSloppyIPv4(text: string): boolean {
  return isIPv4(text.replace(/(^|\.)0+(?=\d)/g, '$1'))
}

function isCIDR(text: string): boolean {
  const [, address = '', bits = ''] = /^([^/]{1,64})\/(\d{1,3})$/.exec(text) ?? []
  if (isSloppyIPv4(address)) return Number(bits) <= 32
  return ipVersion(address) === 6 && Number(bits) <= 128
}

function isMAC(text: string): boolean {
  const [, sign] = /^[0-9a-f]{2}([:-])/i.exec(text) ?? []
  if (sign === undefined) return /^[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4})?$/i.test(text)
  const parts = text.split(sign)
  return [6, 8, 20].includes(parts.length) && parts.every((part) => /^[0-9a-f]{2}$/i.test(part))
}

function isISBN10(text: string): boolean {
  const digits = text.replace(/[\s-]/g, '')
  if (!/^\d{9}[\dX]$/.test(digits)) return false
  const sum = [...digits].reduce(
    (total, digit, index) => total + (10 - index) * (digit === 'X' ? 10 : Number(digit)),
    0,
  )
  return sum % 11 === 0
}

function isISBN13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, '')
  if (!/^\d{13}$/.test(digits)) return false
  return [...digits].reduce((total, digit, index) => total + (index % 2 === 0 ? 1 : 3) * Number(digit), 0) % 10 === 0
}

/** By its length and its check digit (Luhn). */
function isCreditCard(text: string): boolean {
  const digits = text.length > 64 ? '' : text.replace(/\D/g, '')
  if (
    !/^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/.test(
      digits,
    )
  )
    return false
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2)
    return total + (value > 9 ? value - 9 : value)
  }, 0)
  return sum % 10 === 0
}

function isRGBColor(text: string): boolean {
  const [, ...parts] = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text.slice(0, 64)) ?? []
  return parts.length === 3 && text.length <= 64 && parts.every((part) => Number(part) <= 255)
}

function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

function isDate(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? []
  if (year === undefined) return false
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day)
}

/** RFC 3339. */
function isDateTime(text: string): boolean {
  const [, date = '', hours, minutes, seconds, offset = ''] =
    /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,32})?(?:[Zz]|[+-](\d{2}:\d{2}))$/.exec(text) ?? []
  if (!isDate(date)) return false
  const [offsetHours = 0, offsetMinutes = 0] = offset === '' ? [] : offset.split(':').map(Number)
  const isTime = Number(hours) < 24 && Number(minutes) < 60 && Number(seconds) <= 60
  return isTime && offsetHours < 24 && offsetMinutes < 60
}

/** As Go's time.ParseDuration, or one number with the name of a unit: `1h30m`, `22 ns`, `3 days`. */
function isDuration(text: string): boolean {
  if (text.length > 256) return false
  if (/^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.test(text)) return true
  return /^(\d+)\s*(?:ns|nano|nanosecond|us|micro|microsecond|ms|milli|millisecond|s|sec|second|m|min|minute|h|hr|hour|d|day|w|wk|week)s?$/i.test(
    text,
  )
}
